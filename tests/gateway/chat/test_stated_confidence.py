"""Verbalized scores work on tool calls and on JSON: the confidence is asked for in a request of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from bpac import Decision
from bpac.gateway.config.file import Config
from bpac.routing.audit.audit import audit_journal
from bpac.routing.dithering import WIDTH
from bpac.scores.verbalized import SUFFIX
from bpac.stores import open_store
from bpac.stores.export import journal_lines
from bpac.testing import Reply, Request, Script
from tests.gateway.configured import settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
JSON_SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}}
TOOLS = {"tools": [{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]}
CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"answer": 41}'}}
CALLS = Reply("", tool_calls=(CALL,), finish_reason="tool_calls")
EXPERT = Reply("42")


def states(draft: Reply, confidence: Reply) -> Script:
    """A draft's model that is asked for its answer, then for its confidence."""

    def script(request: Request) -> Reply:
        return confidence if "How likely" in request.question else draft

    return script


@pytest.mark.parametrize(
    ("draft", "ask"),
    [(Reply('{"answer": 41}'), JSON_SCHEMA), (CALLS, TOOLS), (Reply("It is 41."), TOOLS)],
    ids=["schema", "tool call", "text beside tools"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_structured_drafts_have_a_stated_confidence(draft: Reply, ask: dict[str, Any], stream: bool) -> None:
    """The draft is served as it is, its uncertainty is what the second answer states, and both cost tokens."""
    model = states(draft, Reply("Confidence: 80%"))
    with Running(pair(model, EXPERT), policy="never", score="verbalized") as (gateway, models):
        got = post(gateway.url, ASK | ask | {"stream": stream, "max_tokens": 500})
        gateway.idle()
        assert got.headers["x-bpac-answered-by"] == "draft"
        assert float(got.headers["x-bpac-uncertainty"]) == pytest.approx(0.2)
        assert b"onfidence" not in got.body
        first, second = (request.body for request in models.requests)
        assert SUFFIX not in first["messages"][-1]["content"]
        assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
        assert "41" in second["messages"][1]["content"]
        assert not {"response_format", "max_tokens", "stream"} & second.keys()
        assert second.get("tools") == ask.get("tools")
        tokens = len(draft.answer_tokens()) + len(Reply("Confidence: 80%").answer_tokens())
        assert gateway.status()["savings"]["draft_tokens"] == tokens


def test_a_confidence_within_the_answer_is_not_the_drafts() -> None:
    """A field of the requested JSON may have that name; only the second answer counts."""
    schema = {"response_format": {"type": "json_object"}}
    model = states(Reply('{"confidence": 0.99}'), Reply("I cannot say."))
    with Running(pair(model, EXPERT), policy="never", score="verbalized") as (gateway, _):
        got = post(gateway.url, ASK | schema)
        assert (got.headers["x-bpac-decision"], got.headers["x-bpac-unscored"]) == ("unscored", "no-score")


def test_a_refused_question_leaves_the_request_without_a_score() -> None:
    """The expert answers, and the reason is counted."""
    model = states(CALLS, Reply("no", status=400))
    with Running(pair(model, EXPERT), policy="never", score="verbalized") as (gateway, _):
        got = post(gateway.url, ASK | TOOLS)
        assert (got.status, got.headers["x-bpac-unscored"]) == (200, "draft-refused")
        gateway.idle()
        assert gateway.status()["unscored"]["requests"] == 1


def test_an_impossible_draft_is_not_asked_for_its_confidence() -> None:
    """Its uncertainty is 1 in any case, and the second request would cost money."""
    model = states(Reply("Sure!"), Reply("Confidence: 100%"))
    with Running(pair(model, EXPERT), policy="never", score="verbalized") as (gateway, models):
        got = post(gateway.url, ASK | JSON_SCHEMA)
        gateway.idle()
        assert got.headers["x-bpac-uncertainty"] == "1.0"
        assert [request.body["model"] for request in models.requests] == ["draft", "expert"]


def test_text_is_still_asked_in_one_request() -> None:
    """Where there is room for a line, a second request would only cost money."""
    with Running(pair(Reply("41\nConfidence: 70%"), EXPERT), policy="never", score="verbalized") as (gateway, models):
        got = post(gateway.url, ASK | {"response_format": {"type": "text"}})
        gateway.idle()
        assert float(got.headers["x-bpac-uncertainty"]) == pytest.approx(0.3)
        assert got.json["choices"][0]["message"]["content"] == "41"
        assert len(models.requests) == 1


def test_games_with_stated_confidence_begin_anew() -> None:
    """Requests that had no score before have one now; games of all other scores go on."""

    def terms(score: str) -> dict[str, Any]:
        route = Config.read(settings("http://127.0.0.1:9/v1", score=score)).routes["homework"]
        found: dict[str, Any] = json.loads(route.terms(route.new_router()))
        return found

    assert terms("perplexity")["draft"] == ["draft", {}]
    assert terms("verbalized")["draft"] == ["draft", {}, "confidence is asked for separately with tools and JSON"]


def test_stated_confidences_are_dithered_in_the_journal(tmp_path: Path) -> None:
    """Callers see the score as measured; the journal has one that is a little lower, and an audit finds it in order."""
    store = f"sqlite:///{tmp_path / 'bpac.db'}"
    model = pair(Reply("42\nConfidence: 70%"), EXPERT)
    with Running(model, gateway={"store": store}, score="verbalized") as (gateway, _):
        shown = [float(post(gateway.url, ASK).headers["x-bpac-uncertainty"]) for _ in range(20)]
        gateway.idle()
    assert shown == [pytest.approx(0.3)] * 20
    opened = open_store(store)
    try:
        (game,) = opened.games()
        recorded = [kept.entry.uncertainty for kept in opened.entries(game) if isinstance(kept.entry, Decision)]
        assert len(set(recorded)) == 20
        assert 0.3 * (1.0 - WIDTH) <= min(recorded) < max(recorded) <= 0.3 + 1e-12
        audit = audit_journal(journal_lines(opened, game))
        assert (audit.rounds, audit.differences) == (20, [])
    finally:
        opened.close()
