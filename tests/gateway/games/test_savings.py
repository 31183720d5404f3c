"""Savings: what was spent is exact, survives restarts, and does not depend on the order of outcomes."""

import json
import random
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.config.models.prices import Price
from bpac.gateway.games.money.savings import ALPHA, Prices, Savings
from bpac.gateway.games.restoring.restoring import folded
from bpac.routing.journal.entries import Entry, Resolved
from bpac.stores import open_store
from bpac.testing import Reply, Request, ScriptedServer
from bpac.wire.usage import Usage
from tests.gateway.configured import settings, wait_for
from tests.gateway.games.test_savings_bounds import decided
from tests.gateway.law import KnownPair, Question
from tests.gateway.measured import metric
from tests.gateway.raw import open_chat, post
from tests.gateway.running import MESSAGES, Running, RunningGateway, pair
from tests.gateway.serving import main, to_toml

ONE = Price(1.0)
ASK: dict[str, Any] = {"model": "homework", "messages": MESSAGES}


def test_what_was_spent_is_exact() -> None:
    """Where the expert was asked it costs the same with a router as without; so only drafts and judges are a cost."""
    savings = Savings()
    for step in range(1, 11):
        savings.add(decided(step, 1.0, True), {"draft_tokens": 7})
        savings.add(Resolved(step, 0.0), {"expert_tokens": 100 * step, "judge_tokens": 3, "propensity": 1.0})
    report = savings.report(Prices(Price(1.0), Price(10.0), Price(5.0))).to_json()
    assert (report["draft_tokens"], report["expert_tokens"], report["judge_tokens"]) == (70, 5500, 30)
    assert report["always_tokens"] == 5500
    for name, value in (("tokens_saved", -100), ("money_saved", -(70 * 1.0 + 30 * 5.0) / 1e6)):
        assert (report[name], report[f"{name}_at_least"], report[f"{name}_at_most"]) == (value, value, value)
    assert report["confidence"] == 1.0 - ALPHA


def test_money_needs_every_price() -> None:
    """An unknown price is not zero: without the price of the judge no money is reported."""
    assert "money_saved" in Savings().report(Prices(Price(1.0), Price(2.0), Price(0.0))).to_json()
    for prices in (None, Prices(None, ONE, ONE), Prices(ONE, None, ONE), Prices(ONE, ONE, None)):
        assert "money_saved" not in Savings().report(prices).to_json()


def test_there_is_no_upper_bound_before_the_first_answer() -> None:
    """No bound, rather than one that assumes something about answers that were never seen."""
    savings = Savings()
    savings.add(decided(1, 0.1, False), {"draft_tokens": 7})
    report = savings.report(Prices(Price(1.0), Price(2.0), Price(0.0))).to_json()
    assert (report["tokens_saved_at_least"], report["tokens_saved_at_most"]) == (-7, None)
    assert (report["money_saved_at_most"], report["longest_answer_assumed"]) == (None, None)


def _game(dice: random.Random) -> list[tuple[Entry, dict[str, Any]]]:
    entries: list[tuple[Entry, dict[str, Any]]] = []
    for step in range(1, 60):
        propensity = dice.choice((0.1, 0.37, 1.0))
        asked = dice.random() < propensity
        entries.append((decided(step, propensity, asked), {"draft_tokens": dice.randrange(99)}))
        if asked:
            note = {"expert_tokens": dice.randrange(1, 999), "judge_tokens": 1, "propensity": propensity}
            entries.append((Resolved(step, 0.0), note))
    return entries


def test_the_order_of_outcomes_does_not_matter() -> None:
    """The report is the same to the bit."""
    dice, reports = random.Random(5), []
    entries = _game(dice)
    for _ in range(5):
        savings = Savings()
        for entry, note in entries:
            savings.add(entry, note)
        reports.append(savings.report().to_json())
        dice.shuffle(entries)
    assert all(report == reports[0] for report in reports)


def test_late_tokens_are_in_the_note_of_the_next_entry() -> None:
    """Live, from the journal, and from any snapshot: the same sums, and nothing counts twice."""
    dice, live = random.Random(6), Savings()
    journal: list[tuple[Entry, dict[str, Any]]] = []
    snapshots = []
    for entry, note in _game(dice):
        if dice.random() < 0.5:
            live.drafted(Usage(dice.randrange(900), 0, dice.randrange(100)))
        if dice.random() < 0.2:
            live.outcome_unused(Usage(90, 9, dice.randrange(100), 3).to_note("judge"))
        snapshots.append((len(journal), json.dumps(asdict(live))))
        noted = dict(live.with_late_tokens(note))
        journal.append((entry, noted))
        live.add(entry, noted)
    for after, snapshot in [(0, json.dumps(asdict(Savings()))), *snapshots]:
        again = Savings.from_json(json.loads(snapshot))
        for entry, note in journal[after:]:
            again.add(entry, note)
        assert again.report() == live.report()
    live.drafted(Usage(completion=7))
    assert live.report().draft_tokens == again.report().draft_tokens + 7


def test_a_snapshot_of_another_version_is_not_used(tmp_path: Path) -> None:
    """A snapshot with other sums or fewer rates: the journal is read instead, and the numbers are right."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(KnownPair()) as models:
        config = settings(models.base_url, gateway=options)
        with RunningGateway(config) as gateway:
            for number in range(30):
                assert post(gateway.url, Question(number).body).status == 200
            gateway.idle()
            before = gateway.status()
        store = open_store(options["store"], read_only=True)
        (game,) = store.games()
        good = store.snapshot(game)
        store.close()
        assert good is not None
        unseen = good["savings"]["unseen"]
        earlier = {"draft_tokens": 1, "expert_tokens": 1, "judge_tokens": 1, "always_tokens": 9.0, "variance": 4.0}
        shorter = good["savings"] | {"unseen": unseen | {"below": [0], "draft_tokens": 99}}
        fewer = good["savings"] | {"draft_tokens": 99, "unseen": unseen | {"below": [0]}}
        lacking = {name: 99 for name in good["savings"] if name != "unseen"}
        for other in (earlier, shorter, fewer, lacking, {}, None):
            store = open_store(options["store"])
            store.save_snapshot(game, good | {"savings": other}, store.claims(game)[-1])
            assert folded(store, game).savings.report().to_json() == before["savings"]
            store.close()
            with RunningGateway(config) as gateway:
                assert gateway.status() == before


def test_bpac_status_reports_money(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command reports what the running gateway reports, including money and its bounds."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}

    def script(request: Request) -> Reply:
        number = int(request.question)
        if request.body["model"] == "draft":
            return Reply("41" if number % 7 == 0 else "42", probability=0.5 if number % 7 == 0 else 0.95)
        return Reply("42", reasoning="hm " * 50)

    with ScriptedServer(script) as models:
        config = settings(models.base_url, gateway=options, epsilon=0.4)
        config["models"]["small"]["price"] = 100.0
        config["models"]["large"]["price"] = 20_000.0
        (tmp_path / "gateway.toml").write_text(to_toml(config))
        with RunningGateway(config) as gateway:
            for number in range(120):
                assert post(gateway.url, Question(number).body).status == 200
            gateway.idle()
            live = gateway.status()["savings"]
            names = ("tokens_saved", "tokens_saved_at_least", "money_saved", "money_saved_at_least")
            measured = {name: metric(gateway, f"bpac_{name}", route="homework", segment="") for name in names}
    assert live["money_saved_at_least"] == pytest.approx(
        (20_000 * (live["tokens_saved_at_least"] + live["draft_tokens"]) - 100 * live["draft_tokens"]) / 1e6
    )
    assert measured == {name: live[name] for name in names}
    assert main(["status", str(tmp_path / "gateway.toml"), "--json"]) == 0
    (game,) = json.loads(capsys.readouterr().out)["games"]
    assert game["savings"] == live
    assert main(["status", str(tmp_path / "gateway.toml")]) == 0
    _, score, learned, tokens, money, spent, output_only = capsys.readouterr().out.splitlines()
    assert score == "  score: mean_token_probability"
    assert learned == "  learned score: none yet, it needs more audits"
    assert f"tokens saved: at least {live['tokens_saved_at_least']:,.0f} with 95% confidence" in tokens
    bound = re.search(r"money saved: at least (\S+) with 95% confidence", money)
    assert bound is not None
    assert float(bound[1]) == pytest.approx(live["money_saved_at_least"], rel=0.05, abs=0.005)
    assert f"estimated {live['money_saved']:,.2f}" in money
    assert f"({live['money_share_saved_at_least']:.1%} of always asking the expert)" in money
    assert f"money spent: {live['money_spent']:,.2f}, always asking the expert: {live['always_money']:,.2f}" in spent
    assert (live["money_covers"], "generated tokens only" in output_only) == ("output", True)


@pytest.mark.parametrize("on_takeover", ["finish", "cancel"])
def test_tokens_after_the_decision_are_counted(tmp_path: Path, on_takeover: str) -> None:
    """The tokens of a streamed draft, finished or cut off, are counted, also after a restart and by ``bpac status``."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    draft = Reply(" ".join(["word"] * 40), pause=0.01)
    score = {"name": "mean_token_probability", "first_tokens": 16}
    with ScriptedServer(pair(draft, Reply("42"))) as models:
        config = settings(models.base_url, gateway=options, policy="always", score=score, on_takeover=on_takeover)
        with RunningGateway(config) as gateway:
            for _ in range(3):
                assert b"42" in post(gateway.url, ASK | {"stream": True}).body
                gateway.idle()
            before = gateway.status()["savings"]
            if on_takeover == "finish":
                assert before["draft_tokens"] == 3 * 40
            else:
                assert 3 * 16 <= before["draft_tokens"] < 3 * 40
        with RunningGateway(config) as gateway:
            assert gateway.status()["savings"] == before
        store = open_store(options["store"], read_only=True)
        assert folded(store, store.games()[-1]).savings.report().to_json() == before
        store.close()


def test_tokens_of_a_draft_without_a_round_are_counted(tmp_path: Path) -> None:
    """The draft broke off and the expert refused: no entry records it, but its tokens survive a restart."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "snapshot_every": 1}
    score = {"name": "mean_token_probability", "first_tokens": 16}
    with ScriptedServer(pair(Reply("41"), Reply("42"))) as models:
        config = settings(models.base_url, gateway=options, policy="always", score=score)
        with RunningGateway(config) as gateway:
            assert post(gateway.url, ASK).status == 200
            gateway.idle()
            paid = gateway.status()["savings"]["draft_tokens"]
            models.script = pair(Reply(" ".join(["word"] * 40), cut=9), Reply("no", status=400))
            assert post(gateway.url, ASK | {"stream": True}).status == 400
            before = gateway.status()
            assert (before["steps"], before["savings"]["draft_tokens"]) == (1, paid + 8)
        with RunningGateway(config) as gateway:
            assert gateway.status() == before


def test_tokens_of_a_late_judge_are_counted() -> None:
    """The outcome is refused, because the paper's policy has settled the round; its tokens were generated."""

    def script(request: Request) -> Reply:
        if "<answer " in request.question:
            return Reply("7", delay=1.5)
        return Reply("41") if request.body["model"] == "draft" else Reply("42")

    judged = {"name": "judge", "judge": "large"}
    with Running(script, loss=judged, deadline=0.2, policy="paper") as (gateway, _):
        answer = open_chat(gateway.url, ASK)
        wait_for(lambda: gateway.status()["forfeits"] == {"deadline": 1})
        answer.close()
        gateway.idle()
        assert gateway.status()["savings"]["judge_tokens"] == 2
