"""A real browser on a running gateway with real traffic."""

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from bpac.dashboard.estimates.what_if import what_if
from bpac.gateway.games.restoring.restoring import folded as fold
from bpac.gateway.telemetry.metrics.counters import BOUNDS
from bpac.gateway.telemetry.metrics.latency import QUANTILES
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.testing import Reply, Request, ScriptedServer
from tests.dashboard.browser import Visit
from tests.dashboard.traffic import ask, folded, metrics
from tests.gateway.configured import settings
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.running import Running, RunningGateway

ROUNDS, REFUSED = 300, 20
PRICES = {"small": {"input": 0.1, "output": 0.5}, "large": {"input": 2.0, "cached_input": 0.2, "output": 8.0}}


def failing_pair(request: Request) -> Reply:
    """The known pair, but the expert fails now and then, and refuses requests with a temperature."""
    if request.body["model"] == "expert" and "temperature" in request.body:
        return Reply("no", status=400)
    if request.body["model"] == "expert" and int(request.question) % 29 == 3:
        return Reply("out of order", status=500)
    return KnownPair()(request)


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    """A gateway with prices, some failures and some hundred rounds."""
    with ScriptedServer(failing_pair) as models:
        config = settings(models.base_url, gateway={"currency": "EUR"}, epsilon=0.3, on_expert_failure="draft")
        for name, price in PRICES.items():
            config["models"][name]["price"] = price
        with RunningGateway(config) as running:
            for number in range(REFUSED):  # while every request goes to the expert
                post(running.url, Question(ROUNDS + number).body | {"temperature": 0})
            ask(running, range(ROUNDS - REFUSED))
            for _ in range(3):
                post(running.url, Question(1).body | {"n": 2})
            running.idle()
            yield running


def test_every_number_is_the_one_of_the_metrics(browser: Browser, gateway: RunningGateway) -> None:
    """A panel shows the same value as /metrics at that moment, to the digits given there."""
    with Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        expect(visit.page.locator("h2[data-field=verdict]")).not_to_be_empty()
        said = metrics(gateway)
        same = {
            "steps": "rounds_total",
            "expert_calls": "expert_calls_total",
            "threshold": "threshold",
            "owed": "open_rounds",
            "epoch": "epoch",
            "alarm.level": "alarm",
            "certificate.average_upper": "certificate_average_upper",
            "savings.draft_tokens": "draft_tokens_total",
            "savings.expert_tokens": "expert_tokens_total",
            "savings.judge_tokens": "judge_tokens_total",
            "savings.tokens_saved": "tokens_saved",
            "savings.tokens_saved_at_least": "tokens_saved_at_least",
            "savings.tokens_saved_at_most": "tokens_saved_at_most",
            "savings.money_saved": "money_saved",
            "savings.money_saved_at_least": "money_saved_at_least",
            "savings.money_saved_at_most": "money_saved_at_most",
            "savings.share_saved": "share_saved",
            "savings.share_saved_at_least": "share_saved_at_least",
            "savings.money_share_saved": "money_share_saved",
            "savings.money_share_saved_at_least": "money_share_saved_at_least",
            "savings.money_spent": "money_spent_total",
            "forfeits.expert failed": "forfeits_total[expert failed]",
            "forfeit_share": "forfeit_share",
            "doubt": "doubt",
            "refused": "refused_total",
            "unscored.requests": "unscored_total[n]",
            "unscored.reasons.n": "unscored_total[n]",
        }
        for field, name in same.items():
            assert visit.value(field) == pytest.approx(said[name], rel=1e-11), field
        assert visit.value("steps") == ROUNDS
        assert visit.value("unscored.share") == 3 / (ROUNDS + 3)
        assert visit.value("refused") == REFUSED
        assert visit.value("forfeits") == said["forfeits_total[expert failed]"] > 0
        for stage in ("draft", "journal", "expert", "grading"):
            count, total = said[f"seconds_count[{stage}]"], said[f"seconds_sum[{stage}]"]
            assert visit.value(f"latency.{stage}.count") == count
            assert visit.value(f"latency.{stage}.mean") == pytest.approx(total / count, rel=1e-6)
            for name, share in QUANTILES.items():
                # In the bucket in which the rank lies, and nowhere else.
                below = [bound for bound in BOUNDS if said[f"seconds_bucket[{bound},{stage}]"] < share * count]
                above = [bound for bound in BOUNDS if said[f"seconds_bucket[{bound},{stage}]"] >= share * count]
                shown = visit.value(f"latency.{stage}.{name}")
                assert (below[-1] if below else 0.0) <= shown <= (above[0] if above else BOUNDS[-1])


def test_every_number_is_the_one_of_the_journal(browser: Browser, gateway: RunningGateway) -> None:
    """Every number in a panel or a chart follows from the exported journal alone."""
    router, entries = folded(gateway)
    summary, certificate = router.summary().to_json(), router.certificate()
    decisions = [entry for entry in entries if isinstance(entry, Decision)]
    with Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        expect(visit.page.locator("h2[data-field=verdict]")).not_to_be_empty()
        for field in ("steps", "expert_calls", "expert_call_rate", "threshold", "owed", "epoch", "epsilon"):
            assert visit.value(field) == summary[field], field
        assert visit.value("alarm.level") == summary["alarm"]
        assert visit.value("certificate.average_upper") == certificate.average_upper
        assert visit.value("forfeits") == sum(summary["forfeits"].values())
        calls = np.cumsum([decision.call_expert for decision in decisions])
        rates = visit.table("rates")
        assert [(row[0], row[1]) for row in rates] == [(row[0], calls[int(row[0] or 0) - 1]) for row in rates]
        assert rates[-1][3:5] == pytest.approx(
            [
                sum(visit.value(f"savings.{kind}_tokens") for kind in ("draft", "expert", "judge")),
                visit.value("savings.always_tokens"),
            ],
            rel=1e-6,
        )
        thresholds = visit.table("threshold")
        # Queries are not decided in the order in which they arrived; the chart shows the latest terms.
        arrivals = list(accumulate((decision.seen for decision in decisions), max))
        for step, _, threshold, epoch in thresholds[:-1]:
            upto = decisions[: int(step or 0)]
            decision = next(one for one in reversed(upto) if one.seen == arrivals[len(upto) - 1])
            assert threshold == pytest.approx(decision.threshold, rel=1e-6)
            assert epoch == decision.epoch
        assert thresholds[-1][2] == pytest.approx(router.threshold, rel=1e-6)
        assert visit.table("certificate")[-1][1] == pytest.approx(certificate.average_upper, rel=1e-6)
        for threshold, log_wealth, _ in visit.table("wealth"):
            assert log_wealth == pytest.approx(router.log_wealth(threshold or 0.0), abs=1e-9)
        (game,) = gateway.service.store.games()
        again = fold(gateway.service.store, game, lambda _: None)
        estimates = what_if(again.router, again.history)
        assert visit.table("what-if") == [pytest.approx(list(row.values()), rel=1e-6) for row in estimates]
        assert len(estimates) > 5
        for low, high, kept, called in visit.table("uncertainty"):
            inside = [one for one in decisions if (low or 0.0) <= one.uncertainty < (high or 0.0)]
            calls_inside = sum(one.call_expert for one in inside)
            assert (kept, called) == (len(inside) - calls_inside, calls_inside)


def test_decisions_are_those_of_the_journal(browser: Browser, gateway: RunningGateway) -> None:
    """Each row and each page of a decision shows what was recorded; filters select the right decisions."""
    _, entries = folded(gateway)
    decisions = {entry.step: entry for entry in entries if isinstance(entry, Decision)}
    outcomes = {entry.step: entry for entry in entries if isinstance(entry, Resolved)}
    with Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        rows = visit.page.locator("tr[data-decision]")
        expect(rows).to_have_count(25)
        expect(rows.first.get_by_role("link")).to_have_text(str(ROUNDS))
        visit.page.get_by_role("combobox", name="Loss", exact=True).select_option("some")
        lost = sorted((step for step, outcome in outcomes.items() if outcome.loss), reverse=True)
        expect(rows.first.get_by_role("link")).to_have_text(str(lost[0]))
        expect(rows).to_have_count(min(25, len(lost)))
        visit.page.get_by_label("Answered by").select_option("draft")
        expect(visit.page.get_by_text("No decision matches these filters.")).to_be_visible()
        visit.page.get_by_role("combobox", name="Loss", exact=True).select_option("")
        visit.page.get_by_label("Outcome").select_option("forfeited")
        given_up = [step for step in sorted(outcomes, reverse=True) if outcomes[step].cause]
        expect(rows.first.get_by_role("link")).to_have_text(str(given_up[0]))
        rows.first.get_by_role("link").click()
        expect(visit.page.locator("h1")).to_have_text(f"Request {given_up[0]}")
        decision = decisions[given_up[0]]
        assert visit.value("decision.uncertainty") == decision.uncertainty
        assert visit.value("decision.threshold") == decision.threshold
        assert visit.value("decision.propensity") == decision.propensity
        expect(visit.page.locator('[data-field="decision.state"]')).to_have_text("could not be graded: expert failed")
        visit.page.reload()
        expect(visit.page.locator("h1")).to_have_text(f"Request {given_up[0]}")


def test_charts_move_when_traffic_comes(browser: Browser) -> None:
    """Without a reload: before the first request, before the threshold opens, and after."""
    with Running(KnownPair(), epsilon=0.3) as (gateway, _), Visit(browser) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        needed = visit.page.locator('[data-field="clean_rounds_needed"]')
        expect(needed).to_be_visible()
        first = visit.value("clean_rounds_needed")
        expect(visit.page.locator('[data-chart="threshold"]')).to_contain_text("No requests yet")
        ask(gateway, range(5))
        expect(visit.page.locator('main [data-field="steps"]')).to_have_attribute("data-value", "5")
        assert visit.value("clean_rounds_needed") == first - 5
        lines = {chart: visit.path(chart, series) for chart, series in LINES.items()}
        ask(gateway, range(5, 200))
        expect(visit.page.locator('main [data-field="steps"]')).to_have_attribute("data-value", "200")
        expect(needed).to_be_hidden()
        assert visit.value("threshold") > 0.0
        for chart, series in LINES.items():
            assert visit.path(chart, series) != lines[chart], chart
        expect(visit.page.locator('[data-panel="events"]')).to_contain_text("the threshold opened")
        expect(visit.page.locator("tr[data-decision]").first.get_by_role("link")).to_have_text("200")
        assert sum(url.endswith("/dashboard") for url in visit.requests) == 1


LINES = {"threshold": "threshold", "certificate": "at most", "rates": "expert calls", "wealth": "wealth"}


def test_a_text_is_kept_only_while_it_is_needed(browser: Browser) -> None:
    """While a request waits for feedback, its page shows both answers, as text."""
    evil = "<img src=x onerror=\"document.title='broken in'\"></pre><script>alert(1)</script>"
    script = KnownPair()
    with Running(
        lambda request: Reply(evil) if request.body["model"] == "expert" else script(request), loss="external"
    ) as (gateway, _):
        raw = gateway.client().chat.completions.with_raw_response.create(**Question(1).body)
        name = raw.headers["x-bpac-decision"]
        gateway.idle()
        with Visit(browser) as visit:
            visit.page.goto(f"{gateway.url}/dashboard#decision={name}")
            expect(visit.page.get_by_role("region", name="Answer of the expert")).to_have_text(evil)
            expect(visit.page.locator('[data-field="decision.state"]')).to_contain_text("waiting for a grade")
            assert post(gateway.url, {"decision": name, "loss": 0.0}, "/v1/feedback").status == 200
            expect(visit.page.locator('[data-field="decision.loss"]')).to_have_attribute("data-value", "0")
            expect(visit.page.get_by_role("region", name="Answer of the expert")).to_be_hidden()
