"""Two and four gateways, each a process, on one route under load: on one Redis server, and on a cluster of three."""

import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlencode

import pytest

from bpac.stores import open_store
from bpac.testing import ScriptedServer
from tests.faults.books import Books
from tests.faults.callers import Callers
from tests.faults.gateway import Gateway, settled
from tests.faults.lives import Lives
from tests.gateway.configured import wait_for
from tests.gateway.law import KnownPair
from tests.redis_clusters import cluster_address, redis_cluster
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name

# Decisions that each gateway makes at least.
EACH = 60


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    """What starts gateways at once."""
    with closing(Lives()) as found:
        yield found


def answers_counted(gateway: Gateway) -> Counter[str]:
    """What a gateway has counted itself: answers by the model that wrote them."""
    with urllib.request.urlopen(f"{gateway.url}/metrics", timeout=60) as response:
        page = response.read().decode()
    found = re.findall(r'bpac_answers_total{answered_by="(\w+)",route="homework"} ([\d.]+)', page)
    return Counter({by: int(float(count)) for by, count in found})


@pytest.mark.parametrize(("servers", "gateways"), [("one", 2), ("one", 4), ("cluster", 4)])
def test_the_folded_stream_is_the_published_state(
    redis: RedisServer, lives: Lives, tmp_path: Path, servers: str, gateways: int
) -> None:
    """To the bit, in every gateway; each answer is a round, once, and the gateways' own counters sum to the journal."""
    options = {"lease": 5, "timeout": 30}
    with ExitStack() as stack:
        if servers == "cluster":
            address = cluster_address(stack.enter_context(redis_cluster(tmp_path)), "many", **options)
        else:
            address = f"{redis.address(new_name())}&{urlencode(options)}"
        models = stack.enter_context(ScriptedServer(KnownPair(delay=0.002, delay_of_loss=0.02)))
        running = [Gateway(lives, tmp_path / f"gateway {at}", models.base_url, address) for at in range(gateways)]
        for gateway in running:
            gateway.start()
            stack.callback(gateway.end)
        for gateway in running:
            gateway.wait_until_ready()
        urls = [gateway.url for gateway in running]
        callers = stack.enter_context(Callers(urls))
        wait_for(lambda: all(callers.decided_since(0.0, url, least=EACH) for url in urls))
        callers.pause()
        settled(running)
        books = Books(stack.enter_context(closing(open_store(address, read_only=True))))
        books.check(callers.got)
        for gateway in running:
            books.compare(gateway.game())
        assert (books.wrong, books.missing, books.twice, callers.failed) == ([], [], 0, 0)
        (book,) = books.games.values()
        assert book.route is not None
        shown = [gateway.game() for gateway in running]
        assert all(game["certificate"] == shown[0]["certificate"] for game in shown)
        assert {game["shared"]["folder"] for game in shown} == {
            game["shared"]["replica"] for game in shown if game["shared"]["folding"]
        }
        decided = [decision for decision, _ in book.decided.values()]
        kept = sum(decision.serve_draft for decision in decided)
        outside = sum(got.decision == "" for got in callers.got)
        counted = [answers_counted(gateway) for gateway in running]
        assert all(sum(one.values()) >= EACH for one in counted), counted
        assert sum(counted, Counter()) == +Counter(draft=kept, expert=len(decided) - kept + outside)
