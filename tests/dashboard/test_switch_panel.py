"""The dashboard of a switch, and of sticky sessions, in a real browser."""

from playwright.sync_api import Browser, expect

from bpac.testing import Reply
from tests.dashboard.browser import Visit
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair


def test_the_dashboard_says_whether_a_model_may_replace_another(browser: Browser) -> None:
    """The answer and its bounds; with sticky sessions, that a round is an episode, and how many requests followed."""
    options = {"score": "none", "epsilon": 0.1, "sticky_by": "header:x-session-id"}
    with Running(pair(Reply("41"), Reply("42")), **options) as (gateway, _), Visit(browser) as visit:
        for number in range(24):
            post(gateway.url, ASK, headers={"x-session-id": f"{number % 12}"})
        gateway.idle()
        found = gateway.status()["switch"]
        assert found["answer"] == "no"
        page = visit.page
        page.goto(f"{gateway.url}/dashboard")
        panel = page.locator('[data-panel="switch"]')
        expect(panel).to_contain_text("Its average loss is at least")
        expect(panel.locator('[data-field="switch.audits"]')).to_have_text("12")
        expect(panel).to_have_attribute("data-level", "broken")
        expect(page.locator("body")).to_contain_text("a round is an episode")
        expect(page.locator('[data-field="savings.followed.requests"]')).to_have_text("12")
        expect(page.locator('[data-field="sessions.open"]')).to_have_text("12")
        expect(page.locator(".promise").first).to_contain_text("Average loss per episode over 12 episodes")
        decisions = page.locator('[data-panel="decisions"]')
        expect(decisions).to_contain_text("12 decisions, episodes 1 to 12.")
        expect(decisions.locator("th").first).to_have_text("episode")
        expect(page.locator('[data-axis="requests"]')).to_have_text("Episodes")
        decisions.locator("tbody a").first.click()
        expect(page.locator("h1")).to_have_text("Episode 12")
        expect(page.locator(".decision-why")).to_contain_text("as for every episode")


def test_other_games_have_neither(browser: Browser) -> None:
    """A route with a score and without sessions shows no switch and no sessions."""
    with Running(pair(Reply("42"), Reply("42"))) as (gateway, _), Visit(browser) as visit:
        post(gateway.url, ASK)
        gateway.idle()
        visit.page.goto(f"{gateway.url}/dashboard")
        expect(visit.page.locator('[data-panel="switch"]')).to_be_hidden()
        expect(visit.page.locator('[data-field="savings.followed.requests"]')).to_be_hidden()
