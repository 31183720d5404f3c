"""Terms that change at a restart: a game goes on when its own terms are in force again, and never with others."""

import itertools
import json
import signal
import sqlite3
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.gateway.config.file import Config
from bpac.gateway.games.terms import changes
from bpac.routing.dithering import WIDTH
from bpac.routing.journal.entries import Opened, Started
from bpac.routing.journal.past_game import past_of
from bpac.routing.policies import POLICIES, Portfolio
from bpac.routing.policies.stakes import DEFAULT_STAKES, GRADED_STAKES
from bpac.stores import open_store
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import settings, wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway, pair
from tests.gateway.serving import Process, to_toml

MODELS = pair(Reply("41"), Reply("42"))


def one_request(config: dict[str, Any]) -> tuple[int, int]:
    """The game and the step of one request to a gateway that is started for it and stopped after it."""
    with RunningGateway(config) as gateway:
        decision = post(gateway.url, ASK).headers["x-bpac-decision"]
        gateway.idle()
    _, game, step, _ = decision.split("-")
    return int(game), int(step)


@pytest.mark.parametrize("order", ["ABA", "ABAB", "AABBAA", "ABCABC", "ABCBA"])
def test_a_game_goes_on_when_its_terms_are_in_force_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], order: str
) -> None:
    """In every order of restarts each epsilon has one game; status and export show the one that is in use."""
    epsilons = {"A": 0.2, "B": 0.3, "C": 0.4}
    expected: dict[str, tuple[int, int]] = {}
    with ScriptedServer(MODELS) as models:
        for before, now in itertools.pairwise(" " + order):
            game, steps = expected.get(now, (len(expected) + 1, 0))
            expected[now] = game, steps + 1
            store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
            config = settings(models.base_url, gateway=store, epsilon=epsilons[now])
            caplog.clear()
            assert one_request(config) == expected[now]
            if before in epsilons and before != now:
                goes_on = f"game {game}, which has these terms, goes on" if steps else "a new game begins"
                said = f"terms changed: {goes_on} (epsilon changed from {epsilons[before]} to {epsilons[now]})"
                assert said in caplog.text
            else:
                assert "terms changed" not in caplog.text
            (tmp_path / "gateway.toml").write_text(to_toml(config))
            assert main(["status", str(tmp_path / "gateway.toml"), "--json"]) == 0
            (status,) = json.loads(capsys.readouterr().out)["games"]
            assert (status["game"], status["steps"]) == expected[now]
            assert main(["export", str(tmp_path / "gateway.toml")]) == 0
            first = json.loads(capsys.readouterr().out.splitlines()[0])
            assert first["number"] == game


DEFAULTS: list[dict[str, Any]] = [
    {"alpha": 0.1},
    {"policy": "portfolio", "memory": "alarmed", "assume": "iid", "alpha_epochs": "all"},
    {"explore": "serve", "max_owed": 4096, "deadline": 99.0},
    {"score": "mean_token_probability"},
    {"score": {"name": "mean_token_probability"}},
    {"loss": "answer"},
    {"loss": {"name": "answer", "equal": "final"}},
    {"model": {"body": {}}},
]


def test_writing_out_a_default_is_no_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A setting that is written into the file with its default value goes on with the same game."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(MODELS) as models:
        for step, written in enumerate([{}, *DEFAULTS, {}], start=1):
            config = settings(models.base_url, gateway=store, **written)
            assert one_request(config) == (1, step), written
    assert "terms changed" not in caplog.text


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"alpha": 0.05}, "alpha changed from 0.1 to 0.05"),
        ({"score": "entropy"}, {"score": {"name": "entropy", "top": 5}}, "score.top changed from 10 to 5"),
        ({}, {"loss": {"equal": "text"}}, "loss.equal changed from final to text"),
        ({}, {"explore": "shadow"}, "explore changed from serve to shadow"),
        ({}, {"model": {"body": {"seed": 7}}}, "draft.body changed; expert.body changed"),
        ({"model": {"body": {"a": True}}}, {"model": {"body": {"a": 1}}}, "draft.body changed; expert.body changed"),
        ({"model": {"body": {"stop": ""}}}, {}, "draft.body changed; expert.body changed"),
    ],
)
def test_a_real_change_begins_a_new_game_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: dict[str, Any], after: dict[str, Any], said: str
) -> None:
    """The log names the term with both values; what is added to the requests of a model is named without them."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(MODELS) as models:
        for game, written in enumerate([before, after], start=1):
            with RunningGateway(settings(models.base_url, gateway=store, **written)) as gateway:
                assert gateway.status()["game"] == game
    assert f"a new game begins ({said})" in caplog.text


def test_a_game_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Earlier versions wrote terms without their defaults: they are compared with the defaults filled in."""
    address = f"sqlite:///{tmp_path / 'bpac.db'}"
    with ScriptedServer(MODELS) as models:
        config = settings(models.base_url, gateway={"store": address})
        route = Config.read(config).routes["homework"]
        store = open_store(address)
        game = store.open_game("homework", "", route.terms(route.new_router()))
        store.append(game, Opened(route.new_router().settings.to_json()), {})
        store.close()
        assert one_request(config) == (1, 1)
        assert one_request(settings(models.base_url, gateway={"store": address}, score="perplexity")) == (2, 1)


def test_a_game_that_lost_entries_never_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither when its terms come back, nor an older game with the same terms in its place."""
    path = tmp_path / "bpac.db"
    with ScriptedServer(MODELS) as models:
        first, second = (
            settings(models.base_url, gateway={"store": f"sqlite:///{path}"}, epsilon=epsilon) for epsilon in (0.2, 0.3)
        )
        assert [one_request(config) for config in (first, first, second)] == [(1, 1), (1, 2), (2, 1)]
        with sqlite3.connect(path) as raw:
            raw.execute("DELETE FROM entries WHERE game = 1 AND number > 4")
        raw.close()
        assert one_request(first) == (3, 1)
        assert "the journal lost entries: a new game begins with a threshold of 0" in caplog.text
        assert [one_request(config) for config in (second, first, second)] == [(2, 2), (3, 2), (2, 3)]


def test_feedback_waits_for_its_game(tmp_path: Path) -> None:
    """While another game is in use an open round stays charged as loss 1; feedback counts once its game goes on."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(MODELS) as models:
        first, second = (
            settings(models.base_url, gateway=store, epsilon=epsilon, loss="external") for epsilon in (0.2, 0.3)
        )
        with RunningGateway(first) as gateway:
            decision = post(gateway.url, ASK).headers["x-bpac-decision"]
            gateway.idle()
        for config, owed, status in [(second, 0, 404), (first, 1, 200), (second, 0, 404), (first, 0, 409)]:
            with RunningGateway(config) as gateway:
                assert gateway.status()["owed"] == owed
                assert post(gateway.url, {"decision": decision, "loss": 0.0}, "/v1/feedback").status == status


def test_a_crash_is_charged_when_its_game_goes_on(tmp_path: Path) -> None:
    """Requests that were cut off cost their own game one loss of 1, however many other games come in between."""
    with ScriptedServer(pair(Reply("41", delay=5.0), Reply("42"))) as models:
        first = Process(tmp_path, models.base_url)
        first.start()
        caller = threading.Thread(target=lambda: _ignoring_errors(first.url))
        caller.start()
        wait_for(lambda: len(models.requests) == 1)
        first.end(signal.SIGKILL)
        caller.join()
        first.close()
    with ScriptedServer(MODELS) as models:
        store = {"store": first.store}
        assert one_request(settings(models.base_url, gateway=store, epsilon=0.3)) == (2, 1)
        assert one_request(settings(models.base_url, gateway=store)) == (1, 1)
    kept = open_store(first.store, read_only=True)
    game = next(game for game in kept.games() if game.number == 1)
    entries = [stored.entry for stored in kept.entries(game)]
    kept.close()
    assert isinstance(entries[0], Opened)
    assert sum(isinstance(entry, Started) for entry in entries) == 2
    assert _charged(entries) == 1


def _charged(entries: list[Any]) -> int:
    """How many tickets without a decision a journal charges as loss 1."""
    return sum(round_.decision is None for round_ in past_of(entries).rounds)


def _ignoring_errors(url: str) -> None:
    with suppress(OSError):
        post(url, ASK)


def test_a_game_from_before_an_improvement_of_the_bets_goes_on_as_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting that its terms do not have is no reason to begin another game, which would start at 0."""
    with ScriptedServer(MODELS) as models:
        store = f"sqlite:///{tmp_path / 'bpac.db'}"
        config = settings(models.base_url, gateway={"store": store})
        with monkeypatch.context() as patch:
            patch.setitem(POLICIES, "portfolio", Portfolio(floor_fractions=()))
            assert one_request(config) == (1, 1)
        assert one_request(config) == (1, 2)
        changed = settings(models.base_url, gateway={"store": store}, memory="latched")
        assert one_request(changed) == (2, 1)
    opened = open_store(store)
    try:
        assert "floor_fractions" not in opened.games()[0].terms
    finally:
        opened.close()


def test_only_a_setting_that_is_missing_before_is_no_change() -> None:
    """A game with dithered scores, or with the sharper certificate, does not go on without them."""
    old = {"score": "verbalized", "router": {"epsilon": 0.1, "policy": {"kind": "Portfolio"}}}
    policy = {"kind": "Portfolio", "dither": 0.5, "floor_fractions": [0.9]}
    new = {"score": "verbalized", "router": {"epsilon": 0.1, "certificate": "sharp", "policy": policy}}
    assert changes(json.dumps(old), json.dumps(new)) == []
    assert [change.name for change in changes(json.dumps(new), json.dumps(old))] == [
        "certificate",
        "policy.dither",
        "policy.floor_fractions",
    ]


def test_a_game_that_no_longer_learns_differs_in_one_term() -> None:
    """The log need not list all features."""
    learn = {"kind": "LearnedScore", "fit_at": [200], "features": ["draft_tokens"]}
    terms = [json.dumps({"router": {"policy": {"kind": "Portfolio", **part}}}) for part in ({"learn": learn}, {})]
    assert [str(change) for change in changes(*terms)] == ["policy.learn.kind changed from LearnedScore to none"]
    other = json.dumps({"router": {"policy": {"kind": "Portfolio", "learn": {**learn, "fit_at": [400]}}}})
    assert [change.name for change in changes(terms[0], other)] == ["policy.learn.fit_at"]


@pytest.mark.parametrize(("score", "width"), [("verbalized", WIDTH), ("self_consistency", WIDTH), ("entropy", 0.0)])
def test_scores_with_few_values_are_dithered(score: str, width: float) -> None:
    """The default policy dithers them; scores from log-probabilities have no ties to break."""
    route = Config.read(settings("http://127.0.0.1:1/v1", score=score)).routes["homework"]
    policy = route.new_router().settings.policy
    assert isinstance(policy, Portfolio)
    assert policy.dither == width


@pytest.mark.parametrize("loss", ["judge", "embedding", "answer"])
def test_graded_losses_have_stakes_of_their_own_and_no_learned_score_unless_asked(loss: str) -> None:
    """A share of α for learned scores costs more there than they are likely to gain; a game that has begun goes on."""
    extra = {"loss": {"name": "judge", "judge": "large"} if loss == "judge" else loss}
    route = Config.read(settings("http://127.0.0.1:1/v1", **extra)).routes["homework"]
    policy = route.new_router().settings.policy
    assert isinstance(policy, Portfolio)
    graded = loss != "answer"
    assert policy.stakes == (GRADED_STAKES if graded else DEFAULT_STAKES)
    assert (policy.learn is None) == graded
    begun = replace(route.new_router().settings, policy=Portfolio(fractions=(0.5,), learn=policy.learn))
    old = json.dumps({**json.loads(route.terms(route.new_router())), "router": begun.to_json()})
    assert changes(old, route.terms(route.new_router()), route.open_terms) == []
    asked = Config.read(settings("http://127.0.0.1:1/v1", **extra, learn=True)).routes["homework"]
    assert asked.new_router().settings.policy.learned is not None
