"""Every request takes a ticket on arrival, and each ticket is decided or withdrawn (MATH section 12)."""

from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.chat.request import ChatRequest
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Overdue, Stopped, Withdrawn
from bpac.routing.router import Router
from bpac.testing import SILENCE, Reply, Request, ScriptedServer
from tests.gateway.chat.test_failures import BROKEN, DRAFT, EXPERT, PATIENT, STREAMS
from tests.gateway.configured import settings, wait_for
from tests.gateway.raw import open_chat, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

FIRST_TOKEN = {"name": "perplexity", "first_tokens": 1}
SCORES = pytest.mark.parametrize("score", ["perplexity", FIRST_TOKEN])
# By what is asked: what is asked for in addition, the draft, the expert, and why the ticket is withdrawn, if it is.
PATHS: dict[str, tuple[dict[str, Any], Reply, Reply, str]] = {
    "decided": ({}, DRAFT, EXPERT, ""),
    "several choices": ({"n": 2}, DRAFT, EXPERT, "n"),
    "a draft without a score": ({}, Reply("41", logprobs=False), EXPERT, "no-score"),
    "a draft that fails": ({}, BROKEN["busy"], EXPERT, "draft-failed"),
    "a draft that is refused": ({}, Reply("no", status=400), EXPERT, "draft-refused"),
    "a draft's server that refuses our key": ({}, Reply("no", status=401), EXPERT, "draft-failed"),
    "both fail": ({}, BROKEN["garbage"], BROKEN["busy"], "draft-failed"),
    "both refuse": ({}, Reply("no", status=400), Reply("no", status=400), "draft-refused"),
    "the expert fails": ({}, DRAFT, BROKEN["busy"], ""),
    "the expert refuses": ({}, DRAFT, Reply("no", status=400), ""),
}


def asked(question: str, **more: Any) -> dict[str, Any]:
    """A request."""
    return {"model": "homework", "messages": [{"role": "user", "content": question}], **more}


def written(gateway: RunningGateway) -> list[Entry]:
    """The journal of the one game."""
    (game,) = gateway.service.store.games()
    return [kept.entry for kept in gateway.service.store.entries(game)]


def router_of(gateway: RunningGateway) -> Router:
    """The router of the one game."""
    (game,) = gateway.service.live_games()
    return game.router


@STREAMS
@SCORES
def test_no_ticket_is_left_over(stream: bool, score: Any) -> None:
    """Whatever happens to the request; so the gateway can record at its end that nothing was cut off."""

    def script(request: Request) -> Reply:
        _, draft, expert, _ = PATHS[request.question]
        return draft if request.body["model"] == "draft" else expert

    with Running(script, score=score) as (gateway, _):
        for question, (more, *_) in PATHS.items():
            post(gateway.url, asked(question, stream=stream, **more))
            assert router_of(gateway).under_way == (), question
        gateway.idle()
        done = [entry for entry in written(gateway) if isinstance(entry, Decision | Withdrawn)]
        assert [entry.ticket for entry in done] == list(range(1, len(PATHS) + 1))
        reasons = [entry.reason if isinstance(entry, Withdrawn) else "" for entry in done]
        assert reasons == [reason for *_, reason in PATHS.values()]
    assert isinstance(written(gateway)[-1], Stopped)


@STREAMS
@SCORES
def test_the_ticket_is_withdrawn_when_the_caller_leaves(stream: bool, score: Any) -> None:
    """It is not a round, and does not count as a request without a score."""
    with Running(pair(SILENCE, EXPERT), model=PATIENT, score=score) as (gateway, models):
        caller = open_chat(gateway.url, ASK | {"stream": stream})
        wait_for(lambda: len(models.requests) == 1)
        assert len(router_of(gateway).under_way) == 1
        caller.close()
        wait_for(lambda: router_of(gateway).under_way == ())
        assert written(gateway)[-1] == Withdrawn(1, "caller-left")
        status = gateway.status()
        assert (status["unscored"]["requests"], status["withdrawn"], status["state"]) == (0, 1, "warming_up")


@STREAMS
@SCORES
def test_the_ticket_is_withdrawn_after_an_internal_error(
    stream: bool, score: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a mistake in the gateway itself does not hold up later requests."""

    def mistaken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a mistake")

    with Running(pair(DRAFT, EXPERT), score=score) as (gateway, _):
        monkeypatch.setattr(ChatRequest, "draft_body", mistaken)
        assert post(gateway.url, ASK | {"stream": stream}).status == 500
        assert router_of(gateway).under_way == ()
        assert written(gateway)[-1] == Withdrawn(1, "error")


def test_a_hanging_draft_does_not_hold_up_later_requests() -> None:
    """After its deadline it is charged and the game goes on; when its caller leaves, the charge is taken back."""

    def script(request: Request) -> Reply:
        return SILENCE if "hang" in request.question else Reply("42")

    with Running(script, model=PATIENT, draft_deadline=0.05) as (gateway, models):
        caller = open_chat(gateway.url, asked("hang"))
        wait_for(lambda: len(models.requests) == 1)
        wait_for(lambda: any(isinstance(entry, Overdue) for entry in written(gateway)))
        for _ in range(60):
            post(gateway.url, ASK)
        wait_for(lambda: gateway.status()["owed"] == 0)
        charged = router_of(gateway).log_wealth(0.5)
        assert gateway.status()["threshold"] > 0.0
        caller.close()
        wait_for(lambda: router_of(gateway).under_way == ())
        assert router_of(gateway).log_wealth(0.5) > charged
        assert written(gateway).count(Overdue(1)) == 1


def test_a_stop_that_cuts_requests_off_is_charged(tmp_path: Path) -> None:
    """Requests that wait for slow drafts are likelier to lose: their tickets are not withdrawn, and the next start
    charges them.
    """

    def script(request: Request) -> Reply:
        return SILENCE if "slow" in request.question else Reply("42")

    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "drain": 0.1}
    with ScriptedServer(script) as models:
        config = settings(models.base_url, gateway=options, model=PATIENT)
        with RunningGateway(config) as gateway:
            for _ in range(5):
                post(gateway.url, ASK)
            gateway.idle()
            caller = open_chat(gateway.url, asked("slow"))
            wait_for(lambda: len(router_of(gateway).under_way) == 1)
            before = router_of(gateway).log_wealth(0.5)
        caller.close()
        with RunningGateway(config) as gateway:
            assert not any(isinstance(entry, Stopped | Withdrawn) for entry in written(gateway))
            post(gateway.url, ASK)
            gateway.idle()
            assert router_of(gateway).log_wealth(0.5) < before - 0.5
        # The stop of that one was clean, so nothing more is charged.
        with RunningGateway(config) as gateway:
            kept = router_of(gateway).log_wealth(0.5)
            post(gateway.url, ASK)
            gateway.idle()
            assert router_of(gateway).log_wealth(0.5) > kept


def test_a_clean_stop_is_not_charged(tmp_path: Path) -> None:
    """A gateway that is stopped between requests loses nothing: its wealth is that of the rounds alone."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    alone = Router(0.2)
    with ScriptedServer(pair(Reply("42"), Reply("42"))) as models:
        for _ in range(2):
            with RunningGateway(settings(models.base_url, gateway=options)) as gateway:
                post(gateway.url, ASK)
                gateway.idle()
                alone.observe(alone.decide(0.5), 0.0)
                assert router_of(gateway).log_wealth(0.5) == alone.log_wealth(0.5)
