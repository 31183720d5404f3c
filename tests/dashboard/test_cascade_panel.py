"""The dashboard of a cascade in a real browser: which model answered, and what that cost."""

from playwright.sync_api import Browser, expect

from bpac.testing import ScriptedServer
from tests.dashboard.browser import Visit
from tests.gateway.chat.test_cascade import ask, cascade, running, scripted, seeded
from tests.gateway.running import RunningGateway


def test_the_dashboard_shows_which_model_answered_and_its_cost(browser: Browser) -> None:
    """Cost per request beside that of always asking the last model, and the stage of every decision."""
    with running(scripted) as (gateway, _):
        seeded(gateway)
        for number in range(40):
            ask(gateway, number)
        gateway.idle()
        status = gateway.status()
        with Visit(browser) as visit:
            page = visit.page
            page.goto(f"{gateway.url}/dashboard")
            panel = page.locator('[data-chart="cascade"]')
            expect(panel).to_contain_text(f"{status['cost']['mean']:.2f}")
            expect(panel).to_contain_text(f"{status['cost']['always']:.2f}")
            for stage in status["stages"]:
                expect(panel.locator(f'[data-field="cascade.{stage["stage"]}.asked"]')).to_have_text(
                    str(stage["asked"])
                )
            expect(page.locator(".answered").first).to_contain_text("stage")
            expect(page.locator("body")).to_contain_text("A cascade bets on several rules at once")


def test_the_dashboard_shows_the_money_of_a_cascade_whose_models_have_prices(browser: Browser) -> None:
    """What was spent, beside what always asking the last model would have cost."""
    with ScriptedServer(scripted) as server:
        config = cascade(server.base_url)
        for price, model in enumerate(config["models"].values(), start=1):
            model["price"] = 1e5 * price
        with RunningGateway(config) as gateway:
            for number in range(10):
                ask(gateway, number)
            gateway.idle()
            savings = gateway.status()["savings"]
            with Visit(browser) as visit:
                page = visit.page
                page.goto(f"{gateway.url}/dashboard")
                shown = page.locator('[data-field="savings.money_spent"]')
                expect(shown).to_be_visible()
                expect(shown).to_contain_text(f"{savings['money_spent']:.2f}")
