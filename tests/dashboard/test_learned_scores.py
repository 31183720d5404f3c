"""What the dashboard says about learned scores, and shares of α that go back while a gateway is killed."""

import math
import random
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from bpac.answer import Token
from bpac.cli.commands.status import _text
from bpac.gateway.games.shown.status import GameStatus
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Learned
from bpac.routing.learning import rates
from bpac.stores import open_store
from bpac.testing import Reply, Request, ScriptedServer
from tests.dashboard.browser import Visit
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.games.test_learned_scores import answers as long_drafts_lose
from tests.gateway.games.test_learned_scores import ask as send
from tests.gateway.raw import post
from tests.gateway.running import RunningGateway
from tests.gateway.serving import ManyLives, main

LEARN = {"fit_at": [40, 55], "shares": [0.2, 0.1], "least_losses": 5.0}


def answers(request: Request) -> Reply:
    """Drafts whose own score says all there is to know about their loss: there is nothing to learn."""
    dice = random.Random(request.question)
    wrong = dice.random() < 0.3
    if request.body["model"] == "draft":
        sure = dice.uniform(0.3, 0.5) if wrong else dice.uniform(0.8, 0.99)
        return Reply(tokens=(Token("wrong" if wrong else "right", math.log(sure)),))
    return Reply("right")


def ask(gateway: ManyLives, number: int) -> None:
    """Ask a question, and wait until its audit is graded."""
    body: dict[str, Any] = {"model": "homework", "messages": [{"role": "user", "content": str(number)}]}
    assert post(gateway.url, body).status == 200
    wait_for(lambda: status_of(gateway)["owed"] == 0)


def status_of(gateway: ManyLives) -> dict[str, Any]:
    """The status of the one game of the one route."""
    (game,) = get_json(f"{gateway.url}/v1/status")["routes"]["homework"]
    assert isinstance(game, dict)
    return game


def test_the_dashboard_says_which_score_the_threshold_is_about(browser: Browser) -> None:
    """A learned score has its own scale: the threshold in force is about the score in force."""
    with ScriptedServer(long_drafts_lose) as models:
        options = {**LEARN, "fit_at": [40], "shares": [0.3], "least_gain": 0.0}
        with RunningGateway(settings(models.base_url, learn=options)) as gateway, Visit(browser) as visit:
            number = 0
            while not any(score["score"] and score["in_force"] for score in gateway.status()["scores"]):
                number += 1
                send(gateway, number)
            visit.page.goto(f"{gateway.url}/dashboard")
            body = visit.page.locator("body")
            expect(body).to_contain_text("drafts with a lower learned score are kept")
            expect(body).to_contain_text("so the threshold jumps where another score comes into force")
            expect(body).to_contain_text("learned score 1: fitted to 40 audits after round")


def test_a_score_that_has_retired_stays_so_after_a_restart(
    tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status, dashboard and command line name it; it is left out of nothing that was recorded."""
    monkeypatch.setattr(rates, "FEWEST_ROUNDS", 40)
    monkeypatch.setattr(rates, "PATIENCE", 100)
    with ScriptedServer(long_drafts_lose) as models:
        store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "snapshot_every": 50}
        config = settings(models.base_url, gateway=store, learn={**LEARN, "least_gain": 0.0})
        with RunningGateway(config) as gateway:
            number = 0
            while not any(score["score"] and score["retired"] for score in gateway.status()["scores"]):
                number += 1
                send(gateway, number)
            before = gateway.status()
        with RunningGateway(config) as gateway, Visit(browser) as visit:
            assert gateway.status() == before
            send(gateway, 0)
            assert [score["retired"] for score in gateway.status()["scores"]] == [
                score["retired"] for score in before["scores"]
            ]
            visit.page.goto(f"{gateway.url}/dashboard")
            body = visit.page.locator("body")
            expect(body).to_contain_text("retired, because the score in force is at least as good")
    retired = [text for text in _text(GameStatus.from_json("homework", before)) if "retired, because" in text]
    assert len(retired) == sum(score["retired"] for score in before["scores"][1:])
    assert not any(score["in_force"] and score["retired"] for score in before["scores"])


def test_shares_that_go_back_survive_a_killed_gateway(tmp_path: Path, browser: Browser) -> None:
    """Each share of α goes back to the route's own score once, whatever restarts, and everything says so."""
    with (
        ScriptedServer(answers) as models,
        closing(ManyLives(tmp_path, models.base_url, learn=LEARN)) as gateway,
    ):
        gateway.start()
        for number in range(30):
            ask(gateway, number)
        assert [score["share"] for score in status_of(gateway)["scores"]] == [0.7]
        gateway.end(signal.SIGKILL)  # before there are enough audits: those so far must count
        gateway.start()
        for number in range(30, 50):
            ask(gateway, number)
        before = status_of(gateway)
        gateway.end(signal.SIGKILL)  # the share must go back once, not twice, and not be lost
        gateway.start()
        assert status_of(gateway)["scores"] == before["scores"]
        for number in range(50, 100):
            ask(gateway, number)
        after = status_of(gateway)
        with Visit(browser) as visit:
            visit.page.goto(f"{gateway.url}/dashboard")
            shown = visit.page.locator(".view-title")
            since = after["scores"][1]["since_step"]
            why = f"learned score 1: none, because a model of 40 audits after round {since} would accept only"
            expect(shown).to_contain_text(why)
            expect(shown).to_contain_text("its share of α went back to the score of the route")
        gateway.end(signal.SIGTERM)
    own, *others = after["scores"]
    assert (own["share"], own["in_force"]) == (pytest.approx(1.0), True)
    assert own["threshold"] > 0.0
    seen = [(learned["share"], learned["in_force"], learned["rounds"]) for learned in others]
    assert seen == [(0.0, False, 40), (0.0, False, 55)]
    line, _ = [text for text in _text(GameStatus.from_json("homework", after)) if "learned score" in text]
    assert why in line
    store = open_store(gateway.store, read_only=True)
    entries = [stored.entry for stored in store.entries(store.games()[-1])]
    store.close()
    learned = [(entry.score, entry.model, entry.rounds) for entry in entries if isinstance(entry, Learned)]
    assert learned == [(1, None, 40), (2, None, 55)]
    decisions = [entry for entry in entries if isinstance(entry, Decision)]
    # The requests before whose decisions the entries were written had arrived already.
    later = others[1]["since_step"]
    scores = [1] * (since + 1) + [2] * (later - since) + [3] * (99 - later)
    assert [len(decision.uncertainties) for decision in decisions] == scores
    journal = str(tmp_path / "journal.jsonl")
    assert main(["export", str(gateway.config), "--out", journal]) == 0
    assert main(["audit", journal]) == 0
