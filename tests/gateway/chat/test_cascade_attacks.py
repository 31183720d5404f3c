"""Attacks on a running cascade: models that fail, hang or send garbage, and callers who leave."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved, Withdrawn
from bpac.testing import SILENCE, Reply, Request, ScriptedServer
from tests.gateway.chat.test_cascade import cascade, seeded
from tests.gateway.configured import wait_for
from tests.gateway.games.test_tickets import asked, router_of, written
from tests.gateway.raw import open_chat, post
from tests.gateway.running import RunningGateway

RIGHT = Reply("42", probability=0.95)
BROKEN = {
    "garbage": Reply(raw=b'{"choices": [{'),
    "nothing": Reply(raw=b"{}"),
    "busy": Reply("busy", status=503),
    "refused": Reply("no", status=400),
    "cut": Reply("42 42 42", cut=1),
    "silent": SILENCE,
    "not a number": Reply(
        raw=b'{"choices": [{"message": {"content": "42"}, "logprobs": {"content": [{"token": "42", "logprob": NaN}]}}]}'
    ),
}
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


class Models:
    """Three models that are right and sure, until a test says otherwise."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}

    def __call__(self, request: Request) -> Reply:
        """The reply of the model that is asked."""
        return self.replies.get(request.body["model"], RIGHT)


@contextmanager
def gateway_of(models: Models, opened: int = 0, **options: Any) -> Iterator[tuple[RunningGateway, ScriptedServer]]:
    """A cascade in front of these models, after some requests that all of them answer alike."""
    with ScriptedServer(models) as server:
        config = cascade(server.base_url, **options)
        for model in config["models"].values():
            model["timeout"] = 0.5
        with RunningGateway(config) as gateway:
            seeded(gateway)
            for number in range(opened):
                assert post(gateway.url, asked(f"{number}?")).status == 200
            gateway.idle()
            assert (router_of(gateway).threshold > 0.0) == (opened > 0)
            yield gateway, server


def outcomes(gateway: RunningGateway) -> list[Resolved]:
    """The outcomes in the journal."""
    return [entry for entry in written(gateway) if isinstance(entry, Resolved)]


def decisions(gateway: RunningGateway) -> list[Decision]:
    """The decisions in the journal."""
    return [entry for entry in written(gateway) if isinstance(entry, Decision)]


@STREAMS
@pytest.mark.parametrize("broken", BROKEN)
def test_a_stage_that_fails_is_passed_over_and_recorded(broken: str, stream: bool) -> None:
    """The caller gets an answer all the same, and the journal says that the model had none."""
    models = Models()
    models.replies["middle"] = BROKEN[broken]
    with gateway_of(models) as (gateway, _):
        got = post(gateway.url, asked("6 * 7?", stream=stream))
        assert (got.status, got.headers["x-bpac-stage"]) == (200, "3")
        assert b"42" in got.body
        gateway.idle()
        (decision,), (outcome,) = decisions(gateway), outcomes(gateway)
        assert decision.call_expert
        assert outcome.stages is not None
        assert [answer is None for answer in outcome.stages.answers] == [False, True]
        assert outcome.stages.losses == (0.0, None)
        assert gateway.status()["owed"] == 0


@STREAMS
@pytest.mark.parametrize("broken", [name for name in BROKEN if name not in ("refused", "not a number")])
def test_a_reference_that_fails_is_a_loss(broken: str, stream: bool) -> None:
    """The caller gets an error, and the round counts as loss 1."""
    models = Models()
    models.replies["expert"] = BROKEN[broken]
    with gateway_of(models) as (gateway, _):
        got = post(gateway.url, asked("6 * 7?", stream=stream))
        assert got.status >= 500 or b"error" in got.body
        gateway.idle()
        (outcome,) = outcomes(gateway)
        assert (outcome.loss, outcome.refused) == (None, False)
        status = gateway.status()
        assert (status["steps"], status["owed"], sum(status["forfeits"].values())) == (1, 0, 1)


def test_a_reference_that_refuses_pays_nothing() -> None:
    """What the last model does not answer neither opens nor closes anything."""
    models = Models()
    models.replies["expert"] = BROKEN["refused"]
    with gateway_of(models) as (gateway, _):
        for number in range(60):
            assert post(gateway.url, asked(f"{number}?")).status == 400
        gateway.idle()
        assert all(outcome.refused for outcome in outcomes(gateway))
        assert router_of(gateway).threshold == 0.0


def test_an_accepted_answer_streams_with_the_name_of_its_model() -> None:
    """The stream is complete, ends as every stream does, and names the stage."""
    with gateway_of(Models(), opened=60) as (gateway, _):
        before = [stage["answered"] for stage in gateway.status()["stages"]]
        got = [post(gateway.url, asked(f"more {number}?", stream=True)) for number in range(30)]
        stages = [reply.headers["x-bpac-stage"] for reply in got]
        assert {"1", "2"} & set(stages)
        assert all(b"42" in reply.body and reply.body.rstrip().endswith(b"data: [DONE]") for reply in got)
        gateway.idle()
        after = [stage["answered"] for stage in gateway.status()["stages"]]
        assert [new - old for old, new in zip(before, after, strict=True)] == [stages.count(s) for s in "123"]


def test_a_model_that_goes_down_later_closes_nothing_and_opens_nothing() -> None:
    """With the first models down, requests are no rounds; with one of them down, they are and the others answer."""
    models = Models()
    with gateway_of(models, opened=60) as (gateway, _):
        before = router_of(gateway).threshold
        models.replies = {"draft": BROKEN["busy"], "middle": BROKEN["garbage"]}
        steps = gateway.status()["steps"]
        for number in range(5):
            assert post(gateway.url, asked(f"down {number}?")).headers["x-bpac-answered-by"] == "expert"
        gateway.idle()
        assert (gateway.status()["steps"], router_of(gateway).threshold) == (steps, before)


def leave(connection: socket.socket) -> None:
    """Disconnect."""
    connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def test_a_caller_who_leaves_before_the_decision_takes_the_ticket_along() -> None:
    """Nothing is decided, and nobody waits for the ticket."""
    models = Models()
    models.replies["draft"] = Reply("42", delay=5.0)
    with gateway_of(models) as (gateway, server):
        connection = open_chat(gateway.url, asked("6 * 7?"))
        wait_for(lambda: len(server.requests) == 1)
        leave(connection)
        wait_for(lambda: any(isinstance(entry, Withdrawn) for entry in written(gateway)))
        assert decisions(gateway) == []
        models.replies.clear()
        assert post(gateway.url, asked("7 * 6?")).status == 200
        gateway.idle()
        assert (gateway.status()["steps"], gateway.status()["owed"]) == (1, 0)


def test_the_round_goes_on_when_the_caller_leaves_in_mid_stream() -> None:
    """The last model's answer is read to its end, and all answers are graded against it."""
    models = Models()
    models.replies["expert"] = Reply("it is 42", pause=0.05)
    with gateway_of(models) as (gateway, server):
        connection = open_chat(gateway.url, asked("6 * 7?", stream=True))
        assert b"200" in connection.recv(64)
        leave(connection)
        wait_for(lambda: len(outcomes(gateway)) == 1)
        (outcome,) = outcomes(gateway)
        assert outcome.stages is not None
        assert None not in outcome.stages.losses
        assert len(server.requests) == 3


def test_a_stage_that_hangs_behind_the_caller_does_not_hold_the_outcome_for_ever() -> None:
    """An audit waits for a model no longer than its timeout, and then counts it as failed."""
    models = Models()
    with gateway_of(models, opened=60) as (gateway, _):
        models.replies = {"draft": SILENCE, "middle": SILENCE}
        active = router_of(gateway).bettor  # type: ignore[attr-defined]
        sure = active.rules[active.active].stages[0]
        models.replies.pop({1: "draft", 2: "middle"}[sure])
        for number in range(12):
            assert post(gateway.url, asked(f"slow {number}?")).status == 200
        wait_for(lambda: gateway.status()["owed"] == 0)
        late = [outcome.stages for outcome in outcomes(gateway)[-1:]]
        assert all(found is not None for found in late)
