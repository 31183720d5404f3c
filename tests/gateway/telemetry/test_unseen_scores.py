"""Routes whose drafts have no score, or a score that cannot be right: said in the log, the status and the command."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from bpac.answer import Token
from bpac.gateway.telemetry.score_watch import MANY
from bpac.testing import Reply, Request
from tests.gateway.configured import settings
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair
from tests.gateway.serving import main, to_toml
from tests.ports import free_port

NO_LOGPROBS = Reply("41", logprobs=False)


def different(probability: float | None) -> Any:
    """A script with another draft for each request; all tokens with one probability, or with 0 and -9999 in turn."""

    def script(request: Request) -> Reply:
        if request.body["model"] == "expert":
            return Reply("42")
        words = [f"{request.number}", " and", " more"][: 2 + request.number % 2]
        if probability is not None:
            return Reply("".join(words), probability=probability)
        broken = (0.0, -9999.0)
        return Reply(tokens=tuple(Token(word, broken[n % 2], (), ()) for n, word in enumerate(words)))

    return script


@pytest.mark.parametrize("requests", [1, 30])
def test_a_route_without_scores_says_so(requests: int, caplog: pytest.LogCaptureFixture) -> None:
    """Never safe or warming up: the state, the reason, what it costs and the remedy; one log line for many requests."""
    with Running(pair(NO_LOGPROBS, Reply("42"))) as (gateway, _):
        for _ in range(requests):
            assert post(gateway.url, ASK).status == 200
        game = gateway.status()
        assert (game["state"], game["steps"], game["refused"]) == ("not_routing", 0, 0)
        assert game["unscored"] == {"requests": requests, "share": 1.0, "reasons": {"no-score": requests}}
        (trouble,) = game["troubles"]
        assert trouble["what"] == f"not routing: no draft could be scored ({requests} × no-score)"
        assert "100.0% of all requests" in trouble["cost"]
        assert "enable log-probabilities" in trouble["remedy"]
        assert metric(gateway, "bpac_unscored_total", route="homework", reason="no-score") == requests
        assert metric(gateway, "bpac_refused_total", route="homework") == 0
    lines = [vars(record) for record in caplog.records if record.message.startswith("no score")]
    assert [(line["route"], line["reason"]) for line in lines] == [("homework", "no-score")]


def test_a_route_whose_draft_dies_stops_being_called_routing() -> None:
    """After rounds with a score, many requests without one make the route not_routing, with its share of all."""
    with Running(pair(Reply("42"), Reply("42")), model={"breaker": 0}) as (gateway, models):
        for _ in range(20):
            post(gateway.url, ASK)
        assert gateway.status()["troubles"] == []
        models.script = pair(Reply("down", status=500), Reply("42"))
        for _ in range(20):
            assert post(gateway.url, ASK).status == 200
        game = gateway.status()
        assert (game["state"], game["unscored"]["share"]) == ("not_routing", 0.5)
        assert "50.0% of all requests" in game["troubles"][0]["cost"]
        models.script = pair(Reply("42"), Reply("42"))
        post(gateway.url, ASK)
        assert gateway.status()["troubles"] == []


def test_the_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``bpac status`` has the state in words, the remedy, and the model that fails while the gateway runs."""
    port = free_port()
    gateway = {"listen": f"127.0.0.1:{port}", "store": f"sqlite:///{tmp_path}/bpac.db"}
    with Running(pair(Reply("wrong key", status=401), Reply("42"))) as (_, models):
        config = settings(models.base_url, gateway=gateway)
        (tmp_path / "gateway.toml").write_text(to_toml(config))
        with RunningGateway(config) as running:
            post(running.url, ASK)
            assert main(["status", str(tmp_path / "gateway.toml")]) == 0
            printed = capsys.readouterr().out
            assert "MODEL small: fails (1 failed attempts)" in printed
            assert "gateway's own key" in printed
            assert "homework: no request decided yet, not routing: no draft could be scored, threshold 0" in printed
            assert "What to do: the draft model's server fails" in printed
            assert main(["status", str(tmp_path / "gateway.toml"), "--json"]) == 0
            report = json.loads(capsys.readouterr().out)
            assert not report["models"]["small"]["health"]["ok"]
            assert report["store"]["ok"]
        assert main(["status", str(tmp_path / "gateway.toml")]) == 0
        assert "MODEL" not in capsys.readouterr().out, "a gateway that does not run knows nothing about models"


@pytest.mark.parametrize("stream", [False, True])
def test_equal_scores_of_different_drafts_are_recognised(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    """They cannot tell good drafts from bad ones; the log says so once."""
    with Running(different(0.5)) as (gateway, models):
        for _ in range(MANY):
            assert gateway.status()["troubles"] == []
            post(gateway.url, ASK | {"stream": stream})
        (trouble,) = gateway.status()["troubles"]
        assert trouble["what"] == f"the latest {MANY} drafts with different texts all have the uncertainty 0.5"
        post(gateway.url, ASK)
        models.script = different(0.25)
        post(gateway.url, ASK)
        assert gateway.status()["troubles"] == []
    assert [record.message for record in caplog.records].count("scores are wrong") == 1


def test_impossible_log_probabilities_are_recognised() -> None:
    """Every token has 0 or -9999: scores differ, but none is computed by the model."""
    with Running(different(None)) as (gateway, _):
        for _ in range(MANY):
            post(gateway.url, ASK)
        (trouble,) = gateway.status()["troubles"]
        assert "no log-probabilities but 0 and -9999" in trouble["what"]
        assert 'score = "verbalized"' in trouble["remedy"]


def test_a_caller_who_repeats_a_question_raises_no_alarm() -> None:
    """The same draft has the same score, and a draft that is certain has the log-probability 0."""
    certain = Reply(tokens=(Token("42", math.log(1.0)),))
    with Running(pair(certain, Reply("42"))) as (gateway, _):
        for _ in range(2 * MANY):
            post(gateway.url, ASK)
        assert gateway.status()["troubles"] == []
