"""Sticky sessions and switches with several processes: whatever front answers, a session has one decision."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import wait_for
from tests.gateway.raw import Got, open_chat, post
from tests.gateway.running import ASK, pair
from tests.gateway.serving import main
from tests.gateway.workers.crew import Crew

ROUTE: dict[str, Any] = {"sticky_by": "header:x-session-id", "score": "none", "epsilon": 0.3}


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crew, ScriptedServer]]:
    """A gateway with two fronts."""
    with ScriptedServer(pair(Reply("42"), Reply("42"))) as models:
        gateway = Crew(tmp_path_factory.mktemp("crew"), models.base_url, **ROUTE)
        try:
            gateway.start()
            yield gateway, models
        finally:
            gateway.close()


def ask(gateway: Crew, session: str) -> Got:
    """A request of a session, on a connection of its own."""
    return post(gateway.url, ASK, headers={"x-session-id": session})


def test_all_fronts_follow_one_decision(crew: tuple[Crew, ScriptedServer]) -> None:
    """Also those that ask at the same moment; a decision outlives the owner and the front that asked for it."""
    gateway, models = crew
    models.script = pair(Reply("42", delay=0.3), Reply("42"))
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: ask(gateway, "a"), range(8)))
    assert Counter(one.headers["x-bpac-session"] for one in got) == {"first": 1, "following": 7}
    (decision,) = {one.headers["x-bpac-decision"] for one in got}
    wait_for(lambda: gateway.game()["savings"].get("followed", {}).get("requests") == 7)
    models.script = pair(Reply("42"), Reply("42"))
    gateway.killed("owner")
    later = ask(gateway, "a")
    assert (later.headers["x-bpac-decision"], later.headers["x-bpac-session"]) == (decision, "following")
    assert gateway.game()["steps"] == 1


def test_a_lost_front_gives_its_claims_back(crew: tuple[Crew, ScriptedServer]) -> None:
    """Its request was not decided, so the next request of the session begins the episode."""
    gateway, models = crew
    models.requests.clear()
    models.script = pair(Reply("42", delay=30.0), Reply("42"))
    with open_chat(gateway.url, ASK, {"x-session-id": "b"}):
        wait_for(lambda: len(models.requests) == 1)
        models.script = pair(Reply("42"), Reply("42"))
        (drafting,) = [front["front"] for front in gateway.workers()["fronts"] if front["drafting"]]
        gateway.killed(f"front {drafting}")
    assert ask(gateway, "b").headers["x-bpac-session"] == "first"
    assert ask(gateway, "b").headers["x-bpac-session"] == "following"


def test_the_verdict_is_read_while_the_gateway_runs(
    crew: tuple[Crew, ScriptedServer], capsys: pytest.CaptureFixture[str]
) -> None:
    """From the journal, which the owner writes; its rounds are episodes."""
    gateway, _ = crew
    for number in range(40):
        ask(gateway, f"s{number}")
    config: Path = gateway.config
    wait_for(lambda: gateway.game()["owed"] == 0)
    assert main(["switch", str(config), "homework", "--json"]) == 0
    (game,) = json.loads(capsys.readouterr().out)["games"]
    assert (game["answer"], game["unit"]) == ("yes", "episode")
