import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from bpac.cli.program import main
from bpac.dashboard.page import replay_page
from bpac.replay.metrics import replay_metrics
from bpac.replay.page import MOST_DECISIONS, replay_document
from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.table import Table
from bpac.replay.tables.writing import write_table
from bpac.routing.policies import POLICIES
from tests.dashboard.browser import PHONE, Visit

SMALL = 2_000_000
LOST = Delay(lost=0.1, deadline=20)


def replayed(table: Table, delay: Delay = LOST, policy: str = "portfolio") -> tuple[Replay, dict[str, Any]]:
    """A replay and what its page says, read back as a browser would."""
    start = RouterFactory(POLICIES[policy], 0.1, 0.1)
    replay = Replay(table, start, delay=delay)
    document = replay_document(replay, start, name="answers.csv", score="entropy", generated=1.0)
    return replay, json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.parametrize("delay", [Delay(), Delay(mean=20.0, by_loss=True), LOST], ids=["at-once", "late", "lost"])
def test_the_page_says_what_the_replay_says(delay: Delay) -> None:
    """Rates, tokens and the actual loss are those of the replay; so is every decision in the page."""
    table = builtin_table("bbh-like", rows=3000)
    replay, document = replayed(table, delay)
    ordered, path = replay.run(0, trace=True)
    run = replay_metrics(ordered, path)
    (game,) = document["games"]
    assert game["expert_call_rate"] == run.expert_call_rate
    assert game["threshold"] == run.threshold > 0.0
    assert game["served_loss"] == pytest.approx(run.empirical_risk)
    saved = game["savings"]
    assert saved["tokens_saved"] == pytest.approx((1.0 - (run.token_ratio or 0.0)) * saved["always_tokens"])
    series = game["series"]
    assert {len(column) for column in series.values()} == {len(series["step"])}
    assert series["step"][-1] == 3000
    assert series["always_tokens"][-1] == saved["always_tokens"]
    assert series["spent_tokens"][-1] == pytest.approx(saved["draft_tokens"] + saved["expert_tokens"])
    calls, served = np.cumsum(path.call_expert), np.cumsum(ordered.loss * path.serve_draft)
    for at, step in enumerate(series["step"]):
        assert series["expert_calls"][at] == calls[step - 1]
        assert series["served_loss"][at] == pytest.approx(served[step - 1] / step)
    assert bool(game["forfeits"]) == (delay == LOST)
    kept = path.decisions[: -MOST_DECISIONS - 1 : -1]
    assert [shown["step"] for shown in document["decisions"]] == [decision.step for decision in kept]
    for shown, decision in zip(document["decisions"], kept, strict=True):
        assert (shown["uncertainty"], shown["call_expert"]) == (decision.uncertainty, decision.call_expert)
        assert shown["loss"] is None or shown["loss"] == ordered.loss[decision.step - 1]
    states = {shown["state"] for shown in document["decisions"]}
    assert states == {Delay(): {"kept", "resolved"}, LOST: {"kept", "resolved", "forfeited", "open"}}.get(
        delay, {"kept", "resolved", "open"}
    )


def test_a_table_without_tokens() -> None:
    """Tokens are None where the table has none."""
    bare = Table(*(getattr(builtin_table("bbh-like", rows=500), name) for name in ("uncertainty", "loss")))
    _, document = replayed(bare)
    assert document["games"][0]["savings"] is None
    assert {shown["draft_tokens"] for shown in document["decisions"]} == {None}


@pytest.mark.parametrize("policy", list(POLICIES))
def test_every_policy_has_a_page(policy: str) -> None:
    """Also those that do not bet on each threshold, or promise nothing."""
    _, document = replayed(builtin_table("bbh-like", rows=400), policy=policy)
    assert replay_page(document).startswith("<!DOCTYPE html>")


def test_replay_html_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``bpac replay --html`` writes a page, also over an existing file and into a new directory."""
    table, page = tmp_path / "answers.csv", tmp_path / "new" / "replay.html"
    write_table(builtin_table("bbh-like", rows=300), table)
    for _ in range(2):
        assert main(["replay", str(table), "--runs", "2", "--html", str(page), "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        document = json.loads(re.findall(r'id="document">(.*?)</script>', page.read_text(encoding="utf-8"))[0])
        assert document["games"][0]["steps"] == report["steps"] == 300
    assert main(["replay", str(table), "--html", str(tmp_path / "answers.csv" / "page.html")]) == 1
    assert "answers.csv" in capsys.readouterr().err


def test_a_long_replay_has_a_small_page() -> None:
    """However long the table is, its page is small: nothing in it grows with the number of rows."""
    sizes = [len(replay_page(replayed(builtin_table("bbh-like", rows=rows), Delay())[1])) for rows in (5_000, 50_000)]
    assert max(sizes) < SMALL
    assert sizes[1] < 1.2 * sizes[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The page of a replay on a disk, and its document."""
    _, document = replayed(builtin_table("bbh-like", rows=3000))
    place = tmp_path_factory.mktemp("page") / "replay.html"
    place.write_text(replay_page(document), encoding="utf-8")
    return place, document


def test_a_page_from_a_disk(browser: Browser, page: tuple[Path, dict[str, Any]]) -> None:
    """It shows the numbers of its document and sends no request."""
    place, document = page
    (game,) = document["games"]
    with Visit(browser) as visit:
        visit.context.set_offline(True)
        visit.page.goto(place.as_uri())
        expect(visit.page.locator("h1")).to_have_text("answers.csv ")
        assert visit.value("served_loss") == game["served_loss"]
        assert visit.value("expert_calls") == game["expert_calls"]
        assert visit.value("savings.tokens_saved") == game["savings"]["tokens_saved"]
        rows = visit.table("certificate")
        assert [row[2] for row in rows] == game["series"]["served_loss"]
        expect(visit.page.locator('[data-chart="latency"]')).to_be_hidden()
        assert visit.requests == [place.as_uri()]


def test_its_decisions_can_be_searched(browser: Browser, page: tuple[Path, dict[str, Any]]) -> None:
    """Filters, pages and the view of one decision work without a gateway."""
    place, document = page
    with Visit(browser) as visit:
        visit.page.goto(place.as_uri())
        shown = visit.page.locator("tr[data-decision]")
        expect(shown).to_have_count(25)
        visit.page.get_by_role("button", name="Older").click()
        expect(shown.first).to_have_attribute("data-decision", document["decisions"][25]["id"])
        visit.page.get_by_label("Outcome").select_option("forfeited")
        wanted = [shown for shown in document["decisions"] if shown["state"] == "forfeited"]
        expect(shown).to_have_count(min(25, len(wanted)))
        visit.page.get_by_label("Uncertainty from").fill("1")
        visit.page.keyboard.press("Tab")
        expect(visit.page.get_by_text("No decision matches these filters.")).to_be_visible()
        visit.page.get_by_label("Uncertainty from").fill("")
        visit.page.keyboard.press("Tab")
        shown.first.get_by_role("link").click()
        expect(visit.page.locator("h1")).to_have_text(f"Request {wanted[0]['step']:,}")
        expect(visit.page.get_by_text(wanted[0]["why"].replace(" %", "\u00a0%"))).to_be_visible()
        assert visit.value("decision.uncertainty") == wanted[0]["uncertainty"]
        visit.page.go_back()
        expect(shown).to_have_count(min(25, len(wanted)))
        assert visit.page.get_by_label("Outcome").input_value() == "forfeited"


def test_charts_can_be_read_by_keyboard(browser: Browser, page: tuple[Path, dict[str, Any]]) -> None:
    """A chart is a slider: arrow keys move along it, and screen readers can read the values."""
    place, document = page
    (game,) = document["games"]
    with Visit(browser, PHONE, "dark") as visit:
        visit.page.goto(place.as_uri())
        slider = visit.page.get_by_role("slider", name="Read values: Threshold over time")
        slider.focus()
        visit.page.keyboard.press("Home")
        assert slider.get_attribute("aria-valuetext") == "request 1: threshold 0"
        visit.page.keyboard.press("End")
        visit.page.keyboard.press("ArrowLeft")
        before = game["series"]["step"][-2]
        assert (slider.get_attribute("aria-valuetext") or "").startswith(f"request {before:,}: threshold 0.")
        expect(visit.page.locator('[data-chart="threshold"] .chart-where')).to_have_text(f"request {before:,}")
        visit.page.keyboard.press("Escape")
        expect(visit.page.locator('[data-chart="threshold"] .chart-where')).to_have_text("latest: request 3,000")
