"""Routes that learn scores: what the journal records, what status shows, restarts and segments."""

import importlib.util
import math
import random
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpac.answer import Answer, Token
from bpac.cli.commands.status import _text
from bpac.errors import MissingExtra, SettingsError
from bpac.gateway.chat.drafts.features import FEATURES, features_of
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes import learning
from bpac.gateway.games.shown.status import GameStatus
from bpac.gateway.running_config import check_embeddings
from bpac.models import prompts
from bpac.routing.bettors import Candidates
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Learned
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings
from tests.gateway.raw import post
from tests.gateway.running import RunningGateway

LEARN = {"fit_at": [40], "shares": [0.3], "least_losses": 5.0, "least_gain": 0.0}


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


def ask(gateway: RunningGateway, question: object, segment: str = "") -> dict[str, str]:
    """Ask a question, and return the headers of the response."""
    body: dict[str, Any] = {"model": "homework", "messages": [{"role": "user", "content": str(question)}]}
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


def decisions_of(gateway: RunningGateway, game: int | None = None) -> list[Decision]:
    """All decisions, or those of one game."""
    store = gateway.service.store
    games = [one for one in store.games() if game in (None, one.number)]
    return [s.entry for one in games for s in store.entries(one) if isinstance(s.entry, Decision)]


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
            with urllib.request.urlopen(f"{gateway.url}/metrics", timeout=60) as response:
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
    """With ``learn = false`` journals are as they were."""
    with ScriptedServer(answers) as models, RunningGateway(settings(models.base_url, learn=False)) as gateway:
        ask(gateway, 1)
        assert "scores" not in gateway.status()
        assert all(not entry.features for entry in entries_of(gateway) if isinstance(entry, Decision))


@pytest.mark.parametrize(
    ("learn", "what"),
    [
        ({"fit": [1]}, "learn: unknown key 'fit'"),
        ({"fit_at": [40, 80], "shares": [2.0, 1.0]}, "learn: the shares"),
        ({"embeddings": 1}, "learn: embeddings must be true or false"),
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
    answer = Answer("x\nConfidence: 80%", tokens=tokens, completion_tokens=4, finish_reason="\ud800" * 99)
    known = dict(zip(FEATURES, features_of(FEATURES, answer, segment="s" * 99, task="t" * 99), strict=True))
    assert known["least_log_probability"] == -2.0
    assert known["last_log_probability"] == -0.1
    assert known["unsure_tokens"] == 0.5
    assert known["stated_confidence"] == 0.8
    assert known["finish_reason"] == "?" * 64
    assert (known["segment"], known["task"]) == ("s" * 64, "t" * 64)
    assert known["prompt_tokens"] is known["entropy"] is None
    impossible = features_of(("mean_log_probability",), Answer("x", tokens=(Token("a", -1e308),) * 3))
    assert impossible == (-10_000.0,)
    assert features_of(FEATURES, None) == (None,) * len(FEATURES)
    part = dict(zip(FEATURES, features_of(FEATURES, Answer("x"), complete=False), strict=True))
    assert part["draft_tokens"] is part["finish_reason"] is part["mean_log_probability"] is None
    assert features_of(("of an earlier version", "tool_calls"), Answer("x")) == (None, 0.0)


def test_entropy_is_a_feature_where_the_server_lists_the_likeliest_tokens() -> None:
    """It is known where the score of the route, or the caller, asks for them, and never an error."""
    even = Token("a", math.log(0.5), top=(math.log(0.5), math.log(0.5)), top_texts=("a", "b"))
    strange = Token("a", math.log(0.5), top=(math.nan,), top_texts=("a",))
    known = [features_of(("entropy",), Answer("a", tokens=(token,)))[0] for token in (even, strange)]
    assert known[0] == pytest.approx(math.log(2) / math.log(3))
    assert known[1] is None


def test_tasks_are_a_feature_without_being_segments() -> None:
    """With ``task_by`` one game learns which tasks are hard; a request without a task has none."""
    with (
        ScriptedServer(answers) as models,
        RunningGateway(settings(models.base_url, task_by="metadata:team")) as gateway,
    ):
        ask(gateway, 1, "law")
        ask(gateway, 2)
        known = [dict(zip(FEATURES, entry.features, strict=True)) for entry in decisions_of(gateway)]
        assert len(gateway.service.store.games()) == 1
    assert [features["task"] for features in known] == ["law", None]
    with pytest.raises(SettingsError, match="task_by must be header:NAME"):
        Config.read(settings("http://127.0.0.1:1", task_by="nothing"))


def embedded(monkeypatch: pytest.MonkeyPatch, embed: Callable[[str], Any]) -> dict[str, Any]:
    """Settings of a route that learns from prompts, which are embedded by this function."""
    monkeypatch.setattr(prompts, "load_embed", lambda: embed)
    monkeypatch.setattr(prompts, "PATIENCE", 0.05)
    return {"learn": {"embeddings": True}}


def test_prompts_are_features_with_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same prompt has the same features, another one has others; all of them are in the journal."""
    route = embedded(monkeypatch, lambda text: np.full(384, len(text) / 384))
    with ScriptedServer(answers) as models, RunningGateway(settings(models.base_url, **route)) as gateway:
        for number in (7, 7, 1234):
            ask(gateway, number)
        known = [entry.features[len(FEATURES) :] for entry in decisions_of(gateway)]
    assert known[0] == known[1] != known[2]
    assert all(isinstance(value, float) for value in known[0])
    assert len(known[0]) == len(prompts.PROMPT_FEATURES)


@pytest.mark.parametrize("reason", ["ValueError", "late", "busy"])
def test_a_prompt_that_cannot_be_embedded_is_a_missing_feature(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, reason: str
) -> None:
    """The request is answered and decided as ever; a metric counts it, and the log says what to do."""

    def embed(text: str) -> Any:
        if reason == "late":
            time.sleep(0.3)
        raise ValueError

    route = embedded(monkeypatch, embed)
    if reason == "busy":
        monkeypatch.setattr(prompts, "MOST_WAITING", 0)
    with ScriptedServer(answers) as models, RunningGateway(settings(models.base_url, **route)) as gateway:
        ask(gateway, 1)
        decision = decisions_of(gateway)[0]
        with urllib.request.urlopen(f"{gateway.url}/metrics", timeout=60) as response:
            metrics = response.read().decode()
    assert decision.features[len(FEATURES) :] == (None,) * len(prompts.PROMPT_FEATURES)
    assert f'bpac_prompt_features_missing_total{{reason="{reason}"}} 1.0' in metrics
    assert any("embeddings = false" in getattr(record, "remedy", "") for record in caplog.records)


def test_missing_packages_of_embeddings_are_reported_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    config = Config.read(settings("http://127.0.0.1:1", learn={"embeddings": True}))
    with pytest.raises(MissingExtra, match="embeddings"):
        check_embeddings(config)


@pytest.mark.parametrize(
    ("route", "fit_at"),
    [
        ({}, (200, 600, 1800)),
        ({"segment_by": "header:x-team"}, (600,)),
        ({"segment_by": "header:x-team", "learn": {"ridge": 3.0}}, (600,)),
        ({"segment_by": "header:x-team", "learn": {"fit_at": [100, 300]}}, (100, 300)),
        ({"segment_by": "header:x-team", "learn": {"shares": [0.1, 0.2, 0.1]}}, (200, 600, 1800)),
    ],
)
def test_segments_that_learn_together_have_one_score(route: dict[str, Any], fit_at: tuple[int, ...]) -> None:
    """Its share of α is not divided, because a segment may be short; what the file says goes first."""
    learned = Config.read(settings("http://127.0.0.1:1", **route)).routes["homework"].learned
    assert learned is not None
    assert learned.fit_at == fit_at
    if fit_at == (600,):
        assert learned.shares == (0.5,)


@pytest.mark.parametrize(
    ("before", "after", "goes_on", "learns"),
    [
        ({"learn": False}, {}, True, False),  # a game that began before routes learned goes on as it is
        ({"learn": False}, {"learn": True}, False, True),  # unless the operator asks
        ({}, {}, True, True),
        ({}, {"learn": True}, True, True),
        ({}, {"learn": False}, False, False),
        ({"learn": LEARN}, {}, True, True),
        ({"learn": LEARN}, {"learn": True}, True, True),
        ({"learn": LEARN}, {"learn": {"fit_at": [40]}}, True, True),
        ({"learn": LEARN}, {"learn": {"fit_at": [60]}}, False, True),
    ],
)
def test_a_game_goes_on_unless_the_operator_asks_for_other_learning(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], goes_on: bool, learns: bool
) -> None:
    """New games learn by default. What the file leaves open stays as the game began, features included."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(answers) as models:
        with RunningGateway(settings(models.base_url, gateway=options, **before)) as gateway:
            ask(gateway, 0)
        with RunningGateway(settings(models.base_url, gateway=options, **after)) as gateway:
            decision = ask(gateway, 1)["x-bpac-decision"]
            assert ("scores" in gateway.status()) is learns
    assert decision.startswith("dec-1-2-" if goes_on else "dec-2-1-")


def test_games_with_other_features_go_on_beside_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that began with an earlier list of features, or without learning, keep theirs; a new one learns."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(answers) as models:
        with RunningGateway(
            settings(models.base_url, gateway=options, segment_by="metadata:team", learn=False)
        ) as gateway:
            ask(gateway, 1, "old")
        config = settings(models.base_url, gateway=options, segment_by="metadata:team")
        with monkeypatch.context() as earlier:
            earlier.setattr(learning, "FEATURES", ("tool_calls", "segment"))
            with RunningGateway(config) as gateway:
                ask(gateway, 2, "middle")
        with RunningGateway(config) as gateway:
            for segment in ("old", "middle", "new"):
                ask(gateway, 3, segment)
            last = {game.segment: decisions_of(gateway, game.number)[-1] for game in gateway.service.store.games()}
    assert last["old"].features == ()
    assert last["middle"].features == (0.0, "middle")
    assert len(last["new"].features) == len(FEATURES)
    assert [last[name].step for name in ("old", "middle", "new")] == [2, 2, 1]


@pytest.mark.parametrize("route", [{"policy": "budget"}, {"assume": "any"}, {"policy": "paper"}])
def test_policies_that_cannot_learn_do_not(route: dict[str, Any]) -> None:
    """The default is to learn where that is possible, and never an error."""
    assert Config.read(settings("http://127.0.0.1:1", **route)).routes["homework"].learned is None


def test_a_request_under_way_is_decided_by_a_score_that_has_retired_since() -> None:
    """Its threshold was certified for that score. Requests after it are not scored by it any more."""
    drafted, go_on = threading.Event(), threading.Event()

    def script(request: Request) -> Reply:
        if request.question == "slow" and request.body["model"] == "draft":
            drafted.set()
            assert go_on.wait(60.0)
        return answers(request)

    with ScriptedServer(script) as models, RunningGateway(settings(models.base_url, learn=LEARN)) as gateway:
        number = 0
        while not any(score["score"] and score["in_force"] for score in gateway.status()["scores"]):
            number += 1
            ask(gateway, number)
        slow = threading.Thread(target=ask, args=(gateway, "slow"))
        slow.start()
        assert drafted.wait(60.0)
        (game,) = gateway.service.live_games()
        route = game.router._route
        assert isinstance(route.bettor, Candidates)
        threshold, route.bettor.active = route.bettor.threshold, 0
        route.bettor.retire(1)
        route._leave_out_retired()
        go_on.set()
        slow.join(60.0)
        ask(gateway, 0)
        held, after = decisions_of(gateway)[-2:]
        model = game.router.learned_models()[0]
    assert (held.threshold, held.uncertainty) == (threshold, held.uncertainties[1])
    assert held.uncertainty == model.score((held.uncertainties[0], *held.features)) < 1.0
    assert after.uncertainties[1] == 1.0
    assert after.uncertainty == after.uncertainties[0]
