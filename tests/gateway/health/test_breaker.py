"""The circuit breaker: requests do not wait for a model that is down, and it comes back by itself."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from bpac.errors import Unavailable
from bpac.gateway.games.rounds.draft_outages import SEVERAL, ends_drafts
from bpac.gateway.health.breaker import Breaker
from bpac.models.retrying import Failed
from bpac.routing.journal.entries import Started, Withdrawn
from bpac.testing import SILENCE, Reply, Request
from tests.gateway.configured import get_json, wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair

QUICK = {"probe_timeout": 1.0}
MODEL = {"timeout": 1.0, "retries": 0, "breaker": 2}
GOOD = Reply("42")
BROKEN = Reply(cut=0)
FAILING = Reply("oops", status=500)
HTML = Reply(raw=b"<html>")


def is_trial(request: Request) -> bool:
    """Whether a request is one of the gateway's own."""
    return request.body.get("max_tokens") == 1


def ask(gateway: RunningGateway, content: str = "6 * 7?", **more: Any) -> Any:
    """Request a completion; its headers."""
    body = {**ASK, "messages": [{"role": "user", "content": content}], **more}
    return gateway.client().chat.completions.with_raw_response.create(**body).headers


def breaker(gateway: RunningGateway, name: str) -> str:
    """The state of a model's breaker, as status shows it."""
    return str(get_json(f"{gateway.url}/v1/status")["models"][name]["health"]["breaker"])


def count(gateway: RunningGateway, kind: type) -> int:
    """The number of journal entries of a kind."""
    (game,) = gateway.service.store.games()
    return sum(isinstance(kept.entry, kind) for kept in gateway.service.store.entries(game))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpac.gateway.health.monitor.FIRST_PAUSE", 0.05)


class Switched:
    """A model whose replies can be changed."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply

    def __call__(self, request: Request) -> Reply:
        """The reply at present."""
        return self.reply


def test_one_refusal_or_answer_resets_the_count() -> None:
    """Only failures in a row count, and an open breaker's error looks like the failure that opened it."""
    state = Breaker("small at http://127.0.0.1", 2)
    assert state.down is None
    state.open(Failed("no answer in time"))
    assert isinstance(state.down, Unavailable)
    assert ends_drafts(state.down)
    state.open(Failed("status 500", 500))
    assert not ends_drafts(state.down)
    state.close()
    assert state.down is None


@pytest.mark.parametrize(
    "broken", [SILENCE, FAILING, BROKEN, Reply(raw=b"<html>")], ids=["hangs", "500", "cut", "html"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_requests_do_not_wait_for_a_draft_that_is_down(broken: Reply, stream: bool) -> None:
    """The expert answers at once, counted by reason; when the draft is back it is used, without a request needed."""
    draft = Switched(broken)
    with Running(pair(draft, GOOD), gateway=QUICK, model=MODEL) as (gateway, models):
        for _ in range(2):
            assert ask(gateway, stream=stream)["x-bpac-unscored"] == "draft-failed"
        wait_for(lambda: breaker(gateway, "small") == "open")
        asked = [one for one in models.requests if one.body["model"] == "draft" and not is_trial(one)]
        for _ in range(3):
            headers = ask(gateway, stream=stream)
            assert (headers["x-bpac-unscored"], headers["x-bpac-answered-by"]) == ("draft-down", "expert")
        assert asked == [one for one in models.requests if one.body["model"] == "draft" and not is_trial(one)]
        assert gateway.status()["unscored"]["reasons"] == {"draft-down": 3, "draft-failed": 2}
        assert get_json(f"{gateway.url}/readyz") == {
            "status": "ready",
            "models": {"small": {"up": False, "probe": "ok"}, "large": {"up": True, "probe": "ok"}},
        }
        draft.reply = GOOD
        wait_for(lambda: breaker(gateway, "small") == "closed")
        assert ask(gateway)["x-bpac-decision"] != "unscored"
        assert gateway.status()["steps"] == 1


def test_a_request_that_retries_stops_when_the_server_is_known_to_be_down() -> None:
    """Without the breaker it would go on for as long as its retries allow."""
    many = {**MODEL, "retries": 1000, "backoff": 0.01}
    with Running(pair(BROKEN, GOOD), gateway=QUICK, model=many) as (gateway, _):
        assert ask(gateway)["x-bpac-unscored"] == "draft-failed"
        assert breaker(gateway, "small") == "open"


@pytest.mark.parametrize("failure", [FAILING, SILENCE, Reply("no", status=400), Reply("no", status=403)])
def test_no_caller_can_open_a_breaker(failure: Reply) -> None:
    """Requests that make a model fail say nothing about others: the gateway's own request is answered."""

    def script(request: Request) -> Reply:
        return failure if request.question == "poison" else GOOD

    with Running(script, gateway=QUICK, model=MODEL) as (gateway, models):
        for _ in range(3):
            assert post(gateway.url, {**ASK, "messages": [{"role": "user", "content": "poison"}]}).status >= 400
        if failure.status not in (400, 403):
            wait_for(lambda: any(is_trial(one) for one in models.requests))
        assert (breaker(gateway, "small"), breaker(gateway, "large")) == ("closed", "closed")
        assert ask(gateway)["x-bpac-decision"] != "unscored"


def test_a_trial_is_plain() -> None:
    """Without the fields of ``body``, with which a model may think for longer than a trial may take."""

    def thinks(request: Request) -> Reply:
        if request.body.get("effort"):
            return FAILING
        return Reply("use max_completion_tokens", status=400)

    with Running(pair(thinks, GOOD), gateway=QUICK, model={**MODEL, "body": {"effort": "high"}}) as (gateway, models):
        for _ in range(4):
            assert ask(gateway)["x-bpac-unscored"] == "draft-failed"
        wait_for(lambda: any(is_trial(one) for one in models.requests))
        assert breaker(gateway, "small") == "closed"


def test_a_rate_limit_is_not_an_outage() -> None:
    """A server that answers 429 is up."""
    with Running(pair(Reply("slow down", status=429), GOOD), gateway=QUICK, model=MODEL) as (gateway, models):
        for _ in range(4):
            assert ask(gateway)["x-bpac-unscored"] == "draft-failed"
        assert breaker(gateway, "small") == "closed"
        assert not any(is_trial(one) for one in models.requests)


def test_a_breaker_can_be_turned_off() -> None:
    """With ``breaker = 0`` every request is sent."""
    never = {**MODEL, "breaker": 0}
    with Running(pair(FAILING, GOOD), gateway={**QUICK, "probe": True}, model=never) as (gateway, _):
        for _ in range(8):
            assert ask(gateway)["x-bpac-unscored"] == "draft-failed"
        assert breaker(gateway, "small") == "closed"


@pytest.mark.parametrize("fallback", ["error", "draft"])
def test_an_expert_that_is_down_keeps_its_rules(fallback: str) -> None:
    """Callers get the error or the draft at once, and every round counts as loss 1, as without a breaker."""
    expert = Switched(FAILING)
    with Running(pair(GOOD, expert), gateway=QUICK, model=MODEL, on_expert_failure=fallback) as (gateway, models):
        for number in range(6):
            if number == 2:
                wait_for(lambda: breaker(gateway, "large") == "open")
            reply = post(gateway.url, ASK)
            assert reply.status == (200 if fallback == "draft" else 502)
            if fallback == "draft":
                assert reply.headers["x-bpac-fallback"] == "expert-failed"
        gateway.idle()
        asked = [one for one in models.requests if one.body["model"] == "expert" and not is_trial(one)]
        assert len(asked) == 2
        status = gateway.status()
        assert (status["steps"], status["forfeits"], status["threshold"]) == (6, {"expert failed": 6}, 0.0)
        expert.reply = GOOD
        wait_for(lambda: breaker(gateway, "large") == "closed")
        assert post(gateway.url, ASK).headers["x-bpac-answered-by"] == "expert"


def test_a_gateway_without_any_model_is_not_ready_and_recovers_without_requests() -> None:
    """A load balancer sends no requests to a gateway that is not ready, so none may be needed."""
    both = Switched(FAILING)
    with Running(both, gateway={**QUICK, "probe": True}, model=MODEL) as (gateway, _):
        wait_for(lambda: post(gateway.url, b"", "/readyz", method="GET").status == 503)
        assert post(gateway.url, b"", "/healthz", method="GET").status == 200
        both.reply = GOOD
        wait_for(lambda: post(gateway.url, b"", "/readyz", method="GET").status == 200)
        wait_for(lambda: get_json(f"{gateway.url}/readyz")["models"]["small"] == {"up": True, "probe": "ok"})


@contextmanager
def slow_drafts(number: int, *, trial: Reply) -> Iterator[tuple[RunningGateway, Callable[[], None]]]:
    """A gateway with a number of drafts under way, whose server is known to be down; a call ends the drafts."""
    drafting, finish = threading.Semaphore(0), threading.Event()

    def draft(request: Request) -> Reply:
        if is_trial(request):
            return trial
        if request.question != "slow":
            return GOOD
        drafting.release()
        assert finish.wait(60.0)
        return GOOD

    with (
        Running(pair(draft, GOOD), gateway=QUICK, model={**MODEL, "timeout": 20.0}) as (gateway, _),
        ThreadPoolExecutor(number) as callers,
    ):
        for _ in range(10):
            ask(gateway)
        gateway.idle()
        slow = [callers.submit(ask, gateway, "slow") for _ in range(number)]
        for _ in slow:
            assert drafting.acquire(timeout=60.0)

        def end() -> None:
            finish.set()
            for one in slow:
                one.result()
            gateway.idle()

        server = next(one for one in gateway.service.monitor._servers if one.name == "small")
        loop = gateway.loop
        loop.call_soon_threadsafe(gateway.service.monitor.suspect, server)
        wait_for(lambda: breaker(gateway, "small") == "open")
        try:
            yield gateway, end
        finally:
            finish.set()


def test_requests_that_skip_their_draft_are_evidence_of_an_outage() -> None:
    """While drafts are under way they count as drafts that broke off: the outage is charged once (MATH section 12)."""
    with slow_drafts(4, trial=BROKEN) as (gateway, end):
        (game,) = gateway.service.live_games()
        before = game.router.log_wealth(1.0)
        for _ in range(SEVERAL):
            assert ask(gateway)["x-bpac-unscored"] == "draft-down"
        assert count(gateway, Started) == 2
        charged = game.router.log_wealth(1.0)
        assert charged < before
        for _ in range(5):
            assert ask(gateway)["x-bpac-unscored"] == "draft-down"
        assert (game.router.log_wealth(1.0), count(gateway, Started)) == (charged, 2)
        end()
        # The drafts of the outage are not decided, although they came in the end.
        assert gateway.status()["steps"] == 10
        assert game.router.under_way == ()


def test_skipped_drafts_of_a_server_that_responds_are_withdrawn() -> None:
    """A status 500 is the response to one request and ends no other: nothing is charged, slow drafts are decided."""
    with slow_drafts(2, trial=FAILING) as (gateway, end):
        (game,) = gateway.service.live_games()
        for _ in range(SEVERAL + 1):
            assert ask(gateway)["x-bpac-unscored"] == "draft-down"
        assert (count(gateway, Started), count(gateway, Withdrawn)) == (1, SEVERAL + 1)
        end()
        assert gateway.status()["steps"] == 12
        assert game.router.under_way == ()


def test_skipped_drafts_change_no_wealth_if_none_is_under_way() -> None:
    """They are not rounds: threshold, wealth, alarm and certificate stay as they were."""
    draft = Switched(GOOD)
    with Running(pair(draft, GOOD), gateway=QUICK, model=MODEL) as (gateway, _):
        for _ in range(10):
            ask(gateway)
        gateway.idle()
        before, wealth = gateway.status(), gateway.service.live_games()[0].router.log_wealth(1.0)
        draft.reply = BROKEN
        for _ in range(2):
            ask(gateway)
        wait_for(lambda: breaker(gateway, "small") == "open")
        for _ in range(5):
            assert ask(gateway)["x-bpac-unscored"] == "draft-down"
        after = gateway.status()
        same = ("steps", "threshold", "alarm", "doubt", "certificate", "expert_calls", "epoch")
        assert {name: after[name] for name in same} == {name: before[name] for name in same}
        assert gateway.service.live_games()[0].router.log_wealth(1.0) == wealth
        assert count(gateway, Started) == 1
