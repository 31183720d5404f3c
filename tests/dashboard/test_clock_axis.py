"""The charts over requests can be drawn over the clock; times that are not known are said to be unknown."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from bpac.dashboard.document import Subject, game_document, whole_document
from bpac.dashboard.history.history import History
from bpac.dashboard.page import replay_page
from bpac.routing.router import Router
from tests.dashboard.browser import PHONE, Visit
from tests.dashboard.traffic import ask, get
from tests.gateway.law import KnownPair
from tests.gateway.running import Running

# A Tuesday at noon, UTC.
NOON = 1_700_049_600.0
ROUNDS = 120
CHARTS = {"threshold": "threshold", "rates": "expert calls", "certificate": "at most"}
UNKNOWN = "The times of these requests are not known."


def written(directory: Path, clock: Callable[[int], float]) -> str:
    """The address of a page about a game whose requests came at these times."""
    # With this policy the expert is called for every request, and each request is a point of the series.
    router, history = Router(0.2, seed=1, policy="always"), History()
    for step in range(1, ROUNDS + 1):
        decision = router.decide(0.3)
        history.decided(decision, clock(step), router)
        if decision.call_expert:
            router.observe(decision, 0.0)
            history.resolved(decision, 0.0)
    game = game_document(Subject("homework"), router, history)
    path = directory / "page.html"
    path.write_text(replay_page(whole_document([game], title="times", live=False, generated=NOON)), encoding="utf-8")
    return path.as_uri()


def places(visit: Visit, chart: str) -> list[float]:
    """Where the points of a line are, from left to right."""
    return [float(x) for x in re.findall(r"[MLH](-?[\d.]+)", visit.path(chart, CHARTS[chart]))]


def ticks(visit: Visit, chart: str = "threshold") -> list[str]:
    """The names of the ticks on the horizontal axis."""
    return visit.page.locator(f'[data-chart="{chart}"] .tick-x').all_text_contents()


def choose(visit: Visit, name: str) -> None:
    """Choose a horizontal axis."""
    visit.page.get_by_role("group", name="Horizontal axis").get_by_role("button", name=name).click()


def test_a_clock_axis_has_the_times(browser: Browser, tmp_path: Path) -> None:
    """Half of the requests came within a minute, the others over two hours: the clock shows it, requests do not."""
    address = written(tmp_path, lambda step: NOON + step if step <= 60 else NOON + 120.0 * (step - 60))
    with Visit(browser) as visit:
        visit.page.goto(address)
        expect(visit.page.locator('[data-chart="threshold"] .axis-name')).to_have_text("requests")
        for chart in CHARTS:
            by_request = places(visit, chart)
            assert len(by_request) == ROUNDS
            assert by_request[59] == pytest.approx((by_request[0] + by_request[-1]) / 2, rel=0.05)
        choose(visit, "Time")
        expect(visit.page.locator('[data-chart="threshold"] .axis-name')).to_have_text("time of day")
        for chart in CHARTS:
            by_clock = places(visit, chart)
            assert len(by_clock) == ROUNDS
            assert by_clock == sorted(by_clock)
            assert by_clock[59] - by_clock[0] < 0.02 * (by_clock[-1] - by_clock[0])
        assert all(re.fullmatch(r"\d\d:[0-5]0|\d+ \w{3}", tick) for tick in ticks(visit))
        assert len(ticks(visit)) > 2
        assert visit.table("rates")[9][:2] == [10, NOON + 10]
        slider = visit.page.get_by_role("slider", name="Read values: Threshold over time")
        slider.focus()
        slider.press("Home")
        expect(visit.page.locator('[data-chart="threshold"] .chart-where')).to_contain_text("request 1, ")
        visit.check_accessibility()
        visit.page.reload()
        expect(visit.page.locator('[data-chart="threshold"] .axis-name')).to_have_text("time of day")
        choose(visit, "Requests")
        expect(visit.page.locator('[data-chart="threshold"] .axis-name')).to_have_text("requests")


def test_unknown_times(browser: Browser, tmp_path: Path) -> None:
    """A replay has no times, and every chart over requests says so instead of inventing them."""
    with Visit(browser, PHONE) as visit:
        visit.page.goto(written(tmp_path, lambda step: 0.0))
        choose(visit, "Time")
        for chart in CHARTS:
            expect(visit.page.locator(f'[data-chart="{chart}"] .empty')).to_contain_text(UNKNOWN)
        expect(visit.page.locator('[data-chart="uncertainty"] .bars')).to_have_count(1)
        visit.check_accessibility()


def test_times_that_are_partly_known(browser: Browser, tmp_path: Path) -> None:
    """Points without a time are left out and counted; a clock that was set back does not fold the line."""

    def clock(step: int) -> float:
        if step <= 20:
            return 0.0
        return NOON + 86_400.0 * step - (3 * 86_400.0 if step > 70 else 0.0)

    with Visit(browser) as visit:
        visit.page.goto(written(tmp_path, clock))
        choose(visit, "Time")
        sentence = visit.page.locator('[data-chart="rates"] .chart-sentence')
        expect(sentence).to_contain_text("20 of 120 points have no known time.")
        expect(visit.page.locator('[data-chart="rates"] .axis-name')).to_have_text("date")
        by_clock = places(visit, "rates")
        assert len(by_clock) == ROUNDS - 20
        assert by_clock == sorted(by_clock)
        assert all(re.fullmatch(r"\d+ \w{3,4}", tick) for tick in ticks(visit))
        assert visit.table("rates")[50][1] == clock(71), "the table has the time that was recorded"


def test_a_running_gateway_has_times(browser: Browser) -> None:
    """The times are those of the journal; with new requests the chosen axis stays."""
    with Running(KnownPair(), epsilon=0.3) as (gateway, _), Visit(browser) as visit:
        ask(gateway, range(10))
        visit.page.goto(f"{gateway.url}/dashboard")
        choose(visit, "Time")
        expect(visit.page.locator('[data-chart="rates"] .axis-name')).to_have_text("time of day")
        ask(gateway, range(10, 15))
        expect(visit.page.locator('main [data-field="steps"]')).to_have_attribute("data-value", "15")
        (game,) = get(gateway, "/data").json["games"]
        points = zip(game["series"]["step"], game["series"]["at"], strict=True)
        assert [tuple(row[:2]) for row in visit.table("rates")] == list(points)
        assert min(game["series"]["at"]) > NOON
