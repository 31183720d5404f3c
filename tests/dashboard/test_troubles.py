"""When the gateway cannot be reached, timers are late or sign-ins expire."""

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from bpac.testing import ScriptedServer
from tests.dashboard.browser import Visit
from tests.dashboard.traffic import ask
from tests.gateway.configured import OPERATOR, settings
from tests.gateway.law import KnownPair
from tests.gateway.running import Running, RunningGateway
from tests.ports import free_port

SHOWN = "document.dispatchEvent(new Event('visibilitychange'))"


def test_a_gateway_that_goes_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    """The page says since when it is unreachable, keeps the last figures, and continues when it is back."""
    place = {"listen": f"127.0.0.1:{free_port()}", "store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(KnownPair()) as models, Visit(browser) as visit:
        config = settings(models.base_url, gateway=place, epsilon=0.3)
        state, trouble = visit.page.locator("#state-text"), visit.page.locator("#trouble")
        with RunningGateway(config) as gateway:
            ask(gateway, range(20))
            visit.page.goto(f"{gateway.url}/dashboard")
            expect(visit.page.locator('main [data-field="steps"]')).to_have_attribute("data-value", "20")
            expect(state).to_contain_text("Live")
            expect(trouble).to_be_hidden()
        expect(trouble).to_contain_text(
            re.compile(
                r"Since \d\d:\d\d:\d\d: the gateway cannot be reached. The page shows the last figures received."
            )
        )
        expect(state).to_contain_text("Last update")
        assert visit.value("steps") == 20
        assert visit.forgive()
        with RunningGateway(config) as gateway:
            ask(gateway, range(20, 25))
            visit.page.get_by_role("button", name="Retry now").click()
            expect(trouble).to_be_hidden()
            expect(visit.page.locator('main [data-field="steps"]')).to_have_attribute("data-value", "25")
            visit.forgive(for_good=True)


def test_timers_that_do_not_fire(browser: Browser) -> None:
    """A page that was hidden is up to date at once when it is shown, although no timer has fired meanwhile."""
    with Running(KnownPair(), epsilon=0.3) as (gateway, _), Visit(browser) as visit:
        steps = visit.page.locator('main [data-field="steps"]')
        visit.page.clock.install()
        visit.page.goto(f"{gateway.url}/dashboard")
        expect(steps).to_have_attribute("data-value", "0")
        now = visit.page.evaluate("Date.now()")
        visit.page.clock.pause_at(now / 1000 + 1)
        ask(gateway, range(5))
        asked = len(visit.requests)
        visit.page.evaluate(SHOWN)
        expect(steps).to_have_attribute("data-value", "5")
        assert any("/data" in url for url in visit.requests[asked:])


def test_ages_come_from_the_clock(browser: Browser) -> None:
    """After a sleep, in which every timer fires at most once, the page does not present old figures as new."""
    with Running(KnownPair(), epsilon=0.3) as (gateway, _), Visit(browser) as visit:
        visit.page.clock.install()
        visit.page.goto(f"{gateway.url}/dashboard")
        expect(visit.page.locator("#state-text")).to_contain_text("Live")
        visit.page.clock.pause_at(visit.page.evaluate("Date.now()") / 1000 + 1)
        visit.context.set_offline(True)
        visit.page.clock.fast_forward(600_000)
        expect(visit.page.locator("#state-text")).to_have_text("Last update 10 min ago")
        visit.context.set_offline(False)
        visit.page.evaluate(SHOWN)
        expect(visit.page.locator("#state-text")).to_have_text("Live, just now")
        assert visit.forgive(for_good=True)


def test_a_response_that_cannot_be_displayed(browser: Browser) -> None:
    """If the page cannot display a response, it says so and continues."""
    with Running(KnownPair(), epsilon=0.3) as (gateway, _), Visit(browser) as visit:
        visit.page.route("**/dashboard/data*", lambda route: route.fulfill(json={"games": [{"game": 1}]}))
        visit.page.goto(f"{gateway.url}/dashboard")
        expect(visit.page.get_by_role("alert")).to_contain_text("this page cannot display the gateway's response")
        assert visit.forgive(for_good=True)
        visit.page.unroute("**/dashboard/data*")
        visit.page.get_by_role("button", name="Retry now").click()
        expect(visit.page.locator("#trouble")).to_be_hidden()
        expect(visit.page.locator("h1")).to_have_text("homework ")


def test_a_sign_in_that_expired(browser: Browser) -> None:
    """After the session ends, the page says so and keeps the last figures."""
    with Running(KnownPair(), gateway={"keys": [OPERATOR | {"key": "key"}]}) as (gateway, _), Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        visit.page.get_by_label("Key").fill("key")
        visit.page.get_by_label("Key").press("Enter")
        expect(visit.page.locator("h1")).to_have_text("homework ")
        visit.context.clear_cookies()
        visit.page.evaluate(SHOWN)
        expect(visit.page.get_by_role("alert")).to_contain_text("you are signed out")
        expect(visit.page.locator("h1")).to_have_text("homework ")
        assert all("401" in trouble for trouble in visit.forgive(for_good=True))


def test_addresses_that_lead_nowhere(browser: Browser) -> None:
    """For a game or a decision that does not exist, the page says so, and the link back works."""
    with Running(KnownPair(), epsilon=0.3) as (gateway, _), Visit(browser) as visit:
        ask(gateway, range(1))
        visit.page.goto(f"{gateway.url}/dashboard#decision=dec-1-1-nonsense")
        expect(visit.page.get_by_text("Cannot show this decision: there is no such decision")).to_be_visible()
        visit.page.get_by_role("link", name="Back to the route").click()
        expect(visit.page.locator("h1")).to_have_text("homework ")
        visit.page.goto(f"{gateway.url}/dashboard#game=99")
        expect(visit.page.locator("h1")).to_have_text("All routes")
        expect(visit.page.locator("tr[data-game]")).to_have_count(1)
        assert all("404" in trouble for trouble in visit.forgive(for_good=True))
