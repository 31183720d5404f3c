"""Routes that learn scores: what the journal records, what status shows, restarts and segments."""

import math
import random
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bpac.answer import Answer, Token
from bpac.cli.commands.status import _text
from bpac.errors import SettingsError
from bpac.gateway.chat.features import FEATURES, features_of
from bpac.gateway.config.file import Config
from bpac.gateway.games.status import GameStatus
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Learned
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings
from tests.gateway.raw import post
from tests.gateway.running import RunningGateway

LEARN = {"fit_at": [40], "shares": [0.3], "least_losses": 5.0}


def answers(request: Request) -> Reply:
    """Drafts that lose if they are long; their first token says nothing."""
    dice = random.Random(request.question)
    long = dice.random() < 0.3
    if request.body["model"] == "draft":
        text = "wrong" if long and dice.random() < 0.9 else "right"
        return Reply(
            tokens=(Token(text, math.log(0.5 + dice.random() / 3)), *(Token(" ", -0.1) for _ in range(9 * long)))
        )
    return Reply("right")


def ask(gateway: RunningGateway, number: int, segment: str = "") -> dict[str, str]:
    """Ask a question, and return the headers of the response."""
    body: dict[str, Any] = {"model": "homework", "messages": [{"role": "user", "content": str(number)}]}
    if segment:
        body["metadata"] = {"team": segment}
    response = post(gateway.url, body)
    assert response.status == 200
    gateway.idle()
    return dict(response.headers)


def entries_of(gateway: RunningGateway) -> list[Any]:
    """All entries of all games."""
    store = gateway.service.store
    return [stored.entry for game in store.games() for stored in store.entries(game)]


def test_a_route_learns_a_score_and_goes_on_with_it_after_a_restart(tmp_path: Path) -> None:
    """Features are in the journal, the score is an entry, status shows it, and a restart changes nothing."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "snapshot_every": 20}
    with ScriptedServer(answers) as models:
        config = settings(models.base_url, gateway=options, learn=LEARN)
        with RunningGateway(config) as gateway:
            for number in range(60):
                ask(gateway, number)
            before = gateway.status()
            entries = entries_of(gateway)
            with urllib.request.urlopen(f"{gateway.url}/metrics", timeout=10) as response:
                metrics = response.read().decode()
        own, learned = before["scores"]
        assert (own["rounds"], learned["rounds"], learned["share"]) == (None, 40, 0.3)
        assert learned["since_step"] >= 40
        decision = next(entry for entry in reversed(entries) if isinstance(entry, Decision))
        assert dict(zip(FEATURES, decision.features, strict=True))["finish_reason"] == "stop"
        assert len(decision.uncertainties) == 2
        assert sum(isinstance(entry, Learned) for entry in entries) == 1
        assert "bpac_learned_score_in_force" in metrics
        assert any("learned score 1: fitted to 40 audits" in line for line in _text(GameStatus.from_json("r", before)))
        with RunningGateway(config) as gateway:
            assert gateway.status() == before
            assert ask(gateway, 99)["x-bpac-decision"].startswith("dec-1-61-")


def test_segments_share_what_they_learn() -> None:
    """A new segment has the score from its first request on; its wealth is its own."""
    with ScriptedServer(answers) as models:
        with RunningGateway(settings(models.base_url, learn=LEARN, segment_by="metadata:team")) as gateway:
            for number in range(45):
                ask(gateway, number, "large")
            ask(gateway, 46, "small")
            status = get_json(f"{gateway.url}/v1/status")
            games = {game["segment"]: game for game in status["routes"]["homework"]}
        assert [len(games[name]["scores"]) for name in ("large", "small")] == [2, 2]
        assert games["small"]["scores"][1]["shared"] is True
        assert games["small"]["scores"][1]["since_step"] == 0


def test_a_route_that_does_not_learn_records_no_features() -> None:
    """The default: journals are as they were."""
    with ScriptedServer(answers) as models, RunningGateway(settings(models.base_url)) as gateway:
        ask(gateway, 1)
        assert "scores" not in gateway.status()
        assert all(not entry.features for entry in entries_of(gateway) if isinstance(entry, Decision))


@pytest.mark.parametrize(
    ("learn", "what"),
    [
        ({"fit": [1]}, "learn: unknown key 'fit'"),
        ({"shares": [2.0]}, "learn: the shares"),
        ("yes", "learn: expected true or false or a table"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(learn: Any, what: str) -> None:
    """The error names the key."""
    with pytest.raises(SettingsError, match=what):
        Config.read(settings("http://127.0.0.1:1", learn=learn))


def test_only_the_portfolio_learns() -> None:
    """Other policies have no scores that join."""
    with pytest.raises(SettingsError, match="belongs to policy"):
        Config.read(settings("http://127.0.0.1:1", learn=True, policy="budget"))


def test_features_of_strange_drafts_are_plain_values() -> None:
    """Servers and callers may send anything: no number is infinite, and no word is long or unreadable."""
    tokens = (Token("a", math.nan), Token("b", -math.inf), Token("c", -2.0), Token("d", -0.1))
    answer = Answer("x", tokens=tokens, completion_tokens=4, finish_reason="\ud800" * 99)
    known = dict(zip(FEATURES, features_of(answer, "s" * 99, complete=True), strict=True))
    assert known["least_log_probability"] == -2.0
    assert known["unsure_tokens"] == 0.5
    assert known["finish_reason"] == "?" * 64
    assert known["segment"] == "s" * 64
    assert known["prompt_tokens"] is None
    assert features_of(None, "", complete=True) == (None,) * len(FEATURES)
    part = dict(zip(FEATURES, features_of(Answer("x"), "", complete=False), strict=True))
    assert part["draft_tokens"] is part["finish_reason"] is part["mean_log_probability"] is None
