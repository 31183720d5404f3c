"""A draft server that goes down ends many drafts at once, which counts like a crash (MATH section 12)."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from bpac.errors import NoScore, Refused, Unavailable
from bpac.gateway.games.restoring.restoring import folded
from bpac.gateway.games.rounds.draft_outages import SEVERAL, DraftOutages, ends_drafts
from bpac.models.retrying import Failed
from bpac.routing.journal.entries import Overdue, Started, Withdrawn
from bpac.routing.tickets.ticket import Ticket
from bpac.testing import Reply, Request
from tests.gateway.running import ASK, Running, RunningGateway, pair

BROKEN = Reply(cut=0)
# Every draft is asked for: tests/gateway/health/test_breaker.py has those that are not.
ONCE = {"retries": 0, "breaker": 0}


def entries(gateway: RunningGateway) -> list[Any]:
    """The journal of the one game."""
    (game,) = gateway.service.store.games()
    return [kept.entry for kept in gateway.service.store.entries(game)]


def count(gateway: RunningGateway, kind: type) -> int:
    """The number of entries of a kind."""
    return sum(isinstance(entry, kind) for entry in entries(gateway))


def from_server(status: int | None) -> Unavailable:
    """The error of a draft that failed after its retries."""
    error = Unavailable("gave no answer", status)
    error.__cause__ = Failed("broke off", status)
    return error


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (from_server(None), True),
        (from_server(502), True),
        (from_server(504), True),
        (from_server(500), False),
        (from_server(429), False),
        (Unavailable("longer than allowed"), False),
        (Refused("no", 400), False),
        (NoScore("no log-probabilities"), False),
    ],
)
def test_only_broken_connections_may_end_several_drafts(error: Exception, ends: bool) -> None:
    """A broken connection may; a server's response to one request, and anything that a caller can cause, may not."""
    assert ends_drafts(error) == ends


def test_few_failed_drafts_are_not_an_outage() -> None:
    """Until several drafts have failed and none has arrived, the failed ones are held back, and then released."""
    outages = DraftOutages()
    tickets = [Ticket(number, 1, 0.0, 0.5, 0, 1) for number in range(SEVERAL)]
    assert not any(outages.failed(ticket, "draft-failed") for ticket in tickets[1:])
    assert tickets[1] in outages
    assert outages.release() == dict.fromkeys(tickets[1:], "draft-failed")
    assert [outages.failed(ticket, "draft-failed") for ticket in tickets] == [False] * (SEVERAL - 1) + [True]
    assert outages.down
    assert tickets[0] not in outages
    assert outages.release() == {}
    assert not outages.down


def test_a_server_that_goes_down_is_charged_once() -> None:
    """All requests under way go to the expert, one is charged, and the requests of the outage are not rounds."""
    down = threading.Event()
    drafting = threading.Semaphore(0)

    def draft(request: Request) -> Reply:
        if request.question == "before":
            return Reply("42")
        drafting.release()
        assert down.wait(60.0)
        return BROKEN

    with Running(pair(draft, Reply("42")), model=ONCE) as (gateway, _), ThreadPoolExecutor(8) as callers:
        client = gateway.client()

        def ask(content: str) -> Any:
            body = {**ASK, "messages": [{"role": "user", "content": content}]}
            return client.chat.completions.with_raw_response.create(**body).headers

        for _ in range(10):
            assert ask("before")["x-bpac-decision"] != "unscored"
        gateway.idle()
        before = gateway.service.live_games()[0].router.log_wealth(1.0)
        asked = [callers.submit(ask, "during") for _ in range(8)]
        for _ in asked:
            assert drafting.acquire(timeout=60.0)
        down.set()
        headers = [answer.result() for answer in asked]
        assert {(each["x-bpac-answered-by"], each["x-bpac-decision"]) for each in headers} == {("expert", "unscored")}
        assert count(gateway, Started) == 2
        assert gateway.service.live_games()[0].router.log_wealth(1.0) < before
        unscored = gateway.status()["unscored"]
        assert unscored["requests"] == 8
        assert unscored["reasons"]["outage"] >= SEVERAL
        # During the outage nothing more is charged.
        charged = gateway.service.live_games()[0].router.log_wealth(1.0)
        for _ in range(5):
            ask("during")
        assert gateway.service.live_games()[0].router.log_wealth(1.0) == charged
        assert count(gateway, Started) == 2
        ask("before")
        assert gateway.status()["steps"] == 11
        assert gateway.service.live_games()[0].router.under_way == ()


@pytest.mark.parametrize("stream", [False, True])
def test_a_draft_that_fails_independently_is_withdrawn(stream: bool) -> None:
    """If drafts before and after it arrive, a broken connection concerns one request only: nothing is charged."""

    def draft(request: Request) -> Reply:
        return BROKEN if request.question == "bad" else Reply("42")

    with Running(pair(draft, Reply("42")), model=ONCE) as (gateway, _):
        client = gateway.client()

        def ask(content: str) -> None:
            body = {**ASK, "messages": [{"role": "user", "content": content}], "stream": stream}
            client.chat.completions.with_raw_response.create(**body)

        for _ in range(6):
            ask("good")
            for _ in range(4):
                ask("bad")
        gateway.idle()
        assert count(gateway, Withdrawn) == 24
        assert count(gateway, Started) == 1
        assert gateway.status()["unscored"]["reasons"] == {"draft-failed": 24}
        assert gateway.service.live_games()[0].router.under_way == ()


@contextmanager
def one_slow_draft(*, failing: int) -> Iterator[tuple[RunningGateway, Callable[[], None]]]:
    """A gateway with one draft that is being generated, and after it so many that failed; a call ends the slow one."""
    drafting, finish = threading.Event(), threading.Event()

    def draft(request: Request) -> Reply:
        if request.question == "bad":
            return BROKEN
        drafting.set()
        assert finish.wait(60.0)
        return Reply("42")

    with Running(pair(draft, Reply("42")), model=ONCE) as (gateway, _), ThreadPoolExecutor(1) as callers:
        client = gateway.client()

        def ask(content: str) -> None:
            client.chat.completions.create(**{**ASK, "messages": [{"role": "user", "content": content}]})

        def end() -> None:
            finish.set()
            slow.result()
            gateway.idle()

        slow = callers.submit(ask, "slow")
        assert drafting.wait(60.0)
        for _ in range(failing):
            ask("bad")
        yield gateway, end


def test_a_failed_draft_is_held_back_while_others_are_under_way() -> None:
    """It waits for the draft of another request; when that arrives, the failed one is withdrawn."""
    with one_slow_draft(failing=1) as (gateway, end):
        (game,) = gateway.service.live_games()
        assert (len(game.router.under_way), count(gateway, Withdrawn)) == (2, 0)
        end()
        assert list(game.router.under_way) == []
        assert count(gateway, Withdrawn) == 1
        kept = folded(gateway.service.store, game.journal.game)
        assert (kept.history.state(), kept.router.step) == (game.history.state(), game.router.step)


def test_drafts_are_not_held_back_beyond_their_deadline() -> None:
    """At the deadline of drafts all that are held back are withdrawn, and those still being generated are overdue."""
    with one_slow_draft(failing=2) as (gateway, end):
        (game,) = gateway.service.live_games()
        game.sweep(time.monotonic() + 3600.0)
        assert [type(entry) for entry in entries(gateway)[-3:]] == [Withdrawn, Withdrawn, Overdue]
        end()
        assert list(game.router.under_way) == []
