"""The dashboard with a keyboard, a screen reader, a phone and a dark theme; and with names that attack it."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from bpac.dashboard.document import Subject, game_document, whole_document
from bpac.dashboard.history.history import History
from bpac.dashboard.page import replay_page
from bpac.dashboard.remedies import FORFEITED, UNSCORED
from bpac.gateway.games.live_game import LiveGame
from bpac.routing.router import Router
from tests.dashboard.browser import DESKTOP, GROUNDS, PHONE, Visit
from tests.dashboard.played import feed
from tests.dashboard.test_page import hostile_document
from tests.dashboard.traffic import ask
from tests.gateway.configured import ALL_ROLES
from tests.gateway.law import KnownPair, Question
from tests.gateway.running import Running, RunningGateway

HOSTILE = (
    "<img src=x onerror=\"document.title='broken in'\">",
    "</script><script>document.title='broken in'</script>",
    "javascript:alert(1)",
    "\u202eright to left",
    "\u05e9\u05dc\u05d5\u05dd",
    "x" * 190,
)
# More games than come with their charts in the first response, so that some have to be loaded separately.
QUIET = tuple(f"tenant {number}" for number in range(26))
SEGMENTS = (*HOSTILE, *QUIET)
SIZES = {"desktop": DESKTOP, "phone": PHONE}


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    """A gateway with many segments, some of which have names that attack the page."""
    with Running(KnownPair(), epsilon=0.3, segment_by="metadata:tenant") as (running, _):
        # Segments with hostile names have two requests, and the first of them many more.
        asked = (*SEGMENTS, *HOSTILE, *[SEGMENTS[0]] * 60)
        ask(running, range(len(asked)), asked)
        yield running


def game_of(gateway: RunningGateway, segment: str) -> LiveGame:
    """The live game of a segment."""
    return next(game for game in gateway.service.live_games() if game.segment == segment)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", ["overview", "game", "decision", "replay"])
def test_every_view_is_accessible(
    browser: Browser, gateway: RunningGateway, tmp_path: Path, view: str, size: str
) -> None:
    """Axe finds nothing serious, controls have names, and no view is wider than the window."""
    game = game_of(gateway, SEGMENTS[0])
    addresses = {
        "overview": f"{gateway.url}/dashboard",
        "game": f"{gateway.url}/dashboard#game={game.number}",
        "decision": f"{gateway.url}/dashboard#decision={game.decision_id(3)}",
        "replay": (tmp_path / "replay.html").as_uri(),
    }
    (tmp_path / "replay.html").write_text(replay_page(hostile_document()), encoding="utf-8")
    shown = {"decision": ".recorded", "overview": "tr[data-game]"}.get(view, '[data-chart="threshold"] h3')
    with Visit(browser, SIZES[size]) as visit:
        visit.page.goto(addresses[view])
        visit.page.locator(shown).first.wait_for()
        visit.check_accessibility()


def test_names_are_only_names(browser: Browser, gateway: RunningGateway) -> None:
    """Any segment name is shown as text, and its link opens like any other."""
    with Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        rows = visit.page.locator("tr[data-game]")
        expect(rows).to_have_count(len(SEGMENTS))
        names = rows.locator(".segment-name").all_text_contents()
        assert sorted(names) == sorted(name.replace("\u202e", "\\u{202e}") for name in SEGMENTS)
        for name in HOSTILE[:4]:
            shown = name.replace("\u202e", "\\u{202e}")
            rows.get_by_text(shown).click()
            expect(visit.page.locator("h1")).to_have_text(f"homework {shown}")
            visit.page.get_by_role("link", name="All routes").click()
            expect(rows).to_have_count(len(SEGMENTS))
        assert visit.page.title() == "bpac gateway"
        assert visit.page.locator("main img, main script").count() == 0


def test_a_game_that_came_without_charts(browser: Browser, gateway: RunningGateway) -> None:
    """Of many games only the busiest come with their charts; the others are loaded when they are opened."""
    with Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        visit.page.get_by_role("searchbox", name="Route or segment").fill("TENANT 25")
        expect(visit.page.locator("tr[data-game]")).to_have_count(1)
        visit.page.get_by_role("link", name="tenant 25").click()
        expect(visit.page.locator("h1")).to_have_text("homework tenant 25")
        expect(visit.page.locator('[data-chart="threshold"] path[data-series]')).to_have_count(1)
        expect(visit.page.locator("tr[data-decision]")).to_have_count(1)


def test_by_keyboard_alone(browser: Browser, gateway: RunningGateway) -> None:
    """From the top to a game, to a decision and back, with nothing but a few keys."""
    with Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        visit.page.locator("tr[data-game]").first.wait_for()
        press = visit.page.keyboard.press
        press("Tab")
        expect(visit.page.get_by_role("link", name="Skip to main content")).to_be_focused()
        press("Enter")
        expect(visit.page.locator("main")).to_be_focused()
        for _ in range(8):  # models, route, search, route, verdict, order, reversed, first game
            press("Tab")
        expect(visit.page.locator("tr[data-game] a").first).to_be_focused()
        press("Enter")
        expect(visit.page.locator("h1")).to_be_focused()
        opened = visit.page.url
        visit.page.locator("tr[data-decision] a").first.focus()
        press("Enter")
        expect(visit.page.locator("h1")).to_contain_text("Request")
        press("Tab")
        visit.page.get_by_role("link", name="Back to homework").focus()
        press("Enter")
        expect(visit.page.locator("tr[data-decision] a").first).to_be_visible()
        assert visit.page.url == opened


def test_a_theme_is_kept(browser: Browser, gateway: RunningGateway) -> None:
    """A chosen theme is kept after a reload, whatever the system prefers."""
    with Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        dark = visit.page.get_by_role("button", name="Dark")
        dark.click()
        expect(visit.page.locator("body")).to_have_css("background-color", GROUNDS["dark"])
        visit.page.reload()
        expect(visit.page.locator("body")).to_have_css("background-color", GROUNDS["dark"])
        expect(dark).to_have_attribute("aria-pressed", "true")


def test_updates_keep_the_focus_and_what_is_open(browser: Browser, gateway: RunningGateway) -> None:
    """New figures neither move the focus nor close an open table."""
    game = game_of(gateway, SEGMENTS[1])
    with Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard#game={game.number}")
        visit.page.locator('[data-chart="rates"] summary').click()
        link = visit.page.locator("tr[data-decision] a").last
        link.focus()
        before = link.text_content()
        ask(gateway, range(100, 103), [game.segment] * 3)
        expect(visit.page.locator("tr[data-decision] a").first).to_have_text(str(game.router.step))
        assert visit.page.evaluate("document.activeElement.textContent") == before
        expect(visit.page.locator('[data-chart="rates"] tbody tr')).to_have_count(game.router.step)
        expect(visit.page.locator('[data-chart="rates"] table')).to_be_visible()


@pytest.mark.parametrize("size", SIZES)
def test_signing_in(browser: Browser, size: str) -> None:
    """Without a key there is a form, with a wrong one an error, with the right one the dashboard until signing out."""
    key = "a key & more"
    with (
        Running(KnownPair(), gateway={"keys": [{"name": "all", "key": key, "roles": ALL_ROLES}]}) as (gateway, _),
        Visit(browser, SIZES[size]) as visit,
    ):
        gateway.client(key).chat.completions.create(**Question(1).body)
        gateway.idle()
        visit.page.goto(f"{gateway.url}/dashboard")
        visit.check_accessibility()
        shown = visit.page.get_by_label("Key")
        shown.fill("wrong")
        shown.press("Enter")
        expect(visit.page.get_by_role("alert")).to_have_text("This is not a valid API key of this gateway.")
        visit.check_accessibility()
        assert all("401" in trouble for trouble in visit.forgive())
        shown.fill(key)
        visit.page.get_by_role("button", name="Sign in").click()
        expect(visit.page.locator("h1")).to_have_text("homework ")
        (cookie,) = visit.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/dashboard")
        assert key not in cookie["value"]
        assert visit.value("steps") == 1
        visit.page.get_by_role("button", name="Sign out").click()
        expect(visit.page.get_by_label("Key")).to_be_visible()
        assert visit.context.cookies() == []
        assert all("401" in trouble for trouble in visit.forgive(for_good=True))


def test_a_route_in_trouble_fits_a_phone(browser: Browser, tmp_path: Path) -> None:
    """Each cause stands beside its remedy, and no sentence is wider than the window."""
    router, history = Router(0.05, 0.1, seed=1), History()
    feed(router, history, [(0.5, 0.0)] * 300)
    for cause in cycle(FORFEITED):
        summary = router.summary()
        if (summary.doubt or 0.0) >= 10_000 and summary.forfeits.keys() == FORFEITED.keys():
            break
        decision = router.decide(0.5)
        if decision.call_expert:
            router.forfeit(decision, cause)
    for reason in UNSCORED:
        history.unscored.withdrawn(reason)
    game = game_document(Subject("homework"), router, history)
    document = whole_document([game], title="in trouble", live=False, generated=0.0)
    (tmp_path / "page.html").write_text(replay_page(document), encoding="utf-8")
    with Visit(browser, PHONE) as visit:
        visit.page.goto((tmp_path / "page.html").as_uri())
        expect(visit.page.get_by_text("every draft is audited until audits can be graded again").last).to_be_visible()
        for cause, remedy in (FORFEITED | UNSCORED).items():
            expect(visit.page.get_by_text(f"{cause}: {remedy}", exact=True)).to_be_visible()
        visit.check_accessibility()
