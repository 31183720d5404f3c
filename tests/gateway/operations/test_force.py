"""``x-bpac-force``: who may choose the model of a request, and that such a request is outside the game."""

from typing import Any

import pytest

from bpac.testing import Reply
from tests.gateway.configured import bearer, get_json
from tests.gateway.operations.asking import ask
from tests.gateway.running import Running, pair

CALLER = {"name": "team", "key": "call-key", "roles": ["call"]}
OPERATOR = {"name": "ops", "key": "ops-key", "roles": ["call", "operator"]}
KEYS = {"keys": [CALLER, OPERATOR]}
PAIR = pair(Reply("from the draft"), Reply("from the expert"))


def content(body: Any) -> str:
    """The text of an answer."""
    text: str = body["choices"][0]["message"]["content"]
    return text


@pytest.mark.parametrize("model", ["draft", "expert"])
def test_an_operator_chooses_the_model(model: str) -> None:
    """Only the chosen model is asked, and the headers say that the request was forced."""
    with Running(PAIR, gateway=KEYS) as (gateway, models):
        status, headers, body = ask(gateway.url, "ops-key", {"x-bpac-force": model})
        assert (status, content(body)) == (200, f"from the {model}")
        assert (headers["x-bpac-decision"], headers["x-bpac-answered-by"]) == ("forced", model)
        assert [request.body["model"] for request in models.requests] == [model]
        assert "logprobs" not in models.requests[0].body


@pytest.mark.parametrize("stream", [False, True])
def test_a_forced_request_is_outside_the_game(stream: bool) -> None:
    """It takes no ticket and leaves no entry in the journal; status and metrics count it by itself."""
    with Running(PAIR) as (gateway, _):
        ask(gateway.url)
        gateway.idle()
        (game,) = gateway.service.live_games()
        before, status = len(list(game.store.entries(game.journal.game))), gateway.status()
        for model in ("draft", "expert", "expert"):
            assert ask(gateway.url, headers={"x-bpac-force": model}, stream=stream)[0] == 200
        gateway.idle()
        assert len(list(game.store.entries(game.journal.game))) == before
        assert gateway.status() == status
        counted = get_json(f"{gateway.url}/v1/status")["outside"]
        assert counted == {"homework": {"forced draft": 1, "forced expert": 2}}
        line = 'bpac_outside_total{answered_by="draft",reason="forced",route="homework"} 1.0'
        assert line in gateway.service.measurements()


def test_callers_may_not_choose_unless_the_route_allows_it() -> None:
    """Without the role operator the header gets 403 and nothing is asked; with allow_force it is obeyed."""
    with Running(PAIR, gateway=KEYS) as (gateway, models):
        status, _, body = ask(gateway.url, "call-key", {"x-bpac-force": "draft"})
        assert (status, body["error"]["code"]) == (403, "force_not_allowed")
        assert not models.requests
        assert gateway.service.rejections.counts == {"force_not_allowed": 1}
    with Running(PAIR, gateway=KEYS, allow_force=True) as (gateway, _):
        assert content(ask(gateway.url, "call-key", {"x-bpac-force": "draft"})[2]) == "from the draft"


@pytest.mark.parametrize("value", ["", "both", "draft, expert"])
def test_another_value_is_refused(value: str) -> None:
    """A value that is not understood is an error and not a decision of the gateway."""
    with Running(PAIR) as (gateway, models):
        status, _, body = ask(gateway.url, headers={"x-bpac-force": value})
        assert (status, body["error"]["param"]) == (400, "x-bpac-force")
        assert not models.requests


def test_a_forced_model_that_fails_is_not_replaced() -> None:
    """The caller gets the error of the chosen model: another answer would not be what was asked for."""
    with Running(pair(Reply(status=500), Reply("42"))) as (gateway, models):
        status, headers, _ = ask(gateway.url, headers={"x-bpac-force": "draft"})
        assert (status, headers["x-bpac-decision"]) == (502, "forced")
        assert [request.body["model"] for request in models.requests] == ["draft"]


def test_a_force_does_not_change_the_terms() -> None:
    """Allowing the override is no new promise: the game continues."""
    with Running(PAIR, gateway=KEYS) as (gateway, _):
        (game,) = gateway.service.live_games()
        config: Any = gateway.config
        allowed = {**config, "routes": {"homework": {**config["routes"]["homework"], "allow_force": True}}}
        assert gateway.reload(allowed)
        assert gateway.service.live_games() == [game]
        assert ask(gateway.url, headers={"x-bpac-force": "draft", **bearer("call-key")})[0] == 200
