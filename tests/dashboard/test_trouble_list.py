"""Troubles that an operator sees without looking for them: failing models, missing and constant scores, the store."""

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from bpac.dashboard.history.history import History
from bpac.dashboard.remedies import UNSCORED, UPSTREAM
from bpac.dashboard.troubles import (
    ScoredGame,
    missed_tokens,
    model_troubles,
    score_troubles,
    store_trouble,
    unscored_troubles,
)
from bpac.errors import StoreError
from bpac.gateway.telemetry.score_watch import MANY as MANY_DRAFTS
from bpac.routing.router import Router
from bpac.testing import Reply
from tests.dashboard.browser import DESKTOP, PHONE, Visit
from tests.dashboard.played import feed
from tests.dashboard.traffic import get
from tests.gateway.configured import get_json
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair

SIZES = {"desktop": DESKTOP, "phone": PHONE}
# How the draft's server fails, the kind under which that is counted, and the reason of the requests without a score.
FAULTS = {
    "logprobs refused": (Reply("no logprobs", status=400), "refused", "draft-refused"),
    "key refused": (Reply("who are you", status=401), "credentials", "draft-failed"),
    "unknown model": (Reply("no such model", status=404), "refused", "draft-refused"),
    "invalid": (Reply("invalid", status=422), "refused", "draft-refused"),
    "rate limit": (Reply("later", status=429), "busy", "draft-failed"),
    "server error": (Reply("out of order", status=500), "busy", "draft-failed"),
    "no log-probabilities": (Reply("41", logprobs=False), None, "no-score"),
}


def ask(gateway: RunningGateway, requests: int) -> None:
    """Send requests; the expert answers them."""
    for _ in range(requests):
        assert post(gateway.url, ASK).status == 200
    gateway.idle()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_draft_that_fails_is_never_called_safe(fault: str) -> None:
    """Verdict and list of troubles say that nothing is routed, why, since when, how often, and what to do."""
    draft, kind, reason = FAULTS[fault]
    with Running(pair(draft, Reply("42"))) as (gateway, _):
        ask(gateway, 3)
        document = get(gateway, "/data").json
    (game,) = document["games"]
    assert (game["state"], game["verdict"]["level"]) == ("not_routing", "stopped")
    assert game["verdict"]["text"] == "Not routing: no draft could be scored in the latest 3 requests"
    assert f"3 × {reason}: {UNSCORED[reason]}" in game["verdict"]["detail"]
    assert game["unscored"] == {"requests": 3, "share": 1.0, "reasons": {reason: 3}}
    listed = {trouble["what"]: trouble for trouble in document["troubles"]}
    trouble = listed[f"route homework is not routing: no draft could be scored (3 × {reason})"]
    assert trouble["count"] == 3
    assert trouble["remedy"] == UNSCORED[reason]
    assert trouble["cost"] == "the expert answers these requests, so they save nothing"
    assert 0 < document["generated"] - trouble["since"] < 600
    about_models = [one for one in document["troubles"] if one["what"].startswith("model small fails")]
    if kind is None:
        assert about_models == []
    else:
        (about_model,) = about_models
        assert f"× {kind}" in about_model["what"]
        assert UPSTREAM[kind] in about_model["remedy"]
        assert about_model["cost"] == "used by: homework"
        if draft.status >= 400:
            assert f"(status {draft.status})" in about_model["what"]
    assert document["models"]["large"]["health"]["failures"] == 0


@pytest.mark.parametrize("size", SIZES)
def test_troubles_stand_above_everything(browser: Browser, size: str) -> None:
    """Without a click: not routing, the reason, the remedy; the models with their failures; nothing is called safe."""
    draft = Reply("who are you", status=401)
    with Running(pair(draft, Reply("42"))) as (gateway, _), Visit(browser, SIZES[size]) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        troubles = visit.page.get_by_role("region", name="Troubles")
        expect(visit.page.locator("h1")).to_have_text("homework ")
        expect(troubles).to_be_hidden()
        ask(gateway, 2)
        expect(troubles.locator("h2")).to_have_text("2 troubles to look at")
        expect(troubles).to_contain_text("homework is not routing: no draft could be scored (2\u00a0× draft-failed).")
        expect(troubles).to_contain_text("What to do: Its server does not accept the gateway's key: correct api_key")
        expect(troubles).to_contain_text("counted 2 times.")
        expect(visit.page.locator("h2[data-field=verdict]")).to_contain_text("Not routing: no draft could be scored")
        expect(visit.page.get_by_text("Drafts are kept once enough of them")).to_be_hidden()
        assert visit.page.title() == "Not routing: homework – bpac"
        models = visit.page.get_by_role("region", name="Models")
        expect(models.locator("summary")).to_have_text("2 models: small fails")
        expect(models.locator('tr[data-model="small"]')).to_be_visible()
        expect(models.locator('tr[data-model="small"]')).to_contain_text("2 × credentials (status 401)")
        expect(models.locator('tr[data-model="large"]')).to_contain_text("answers")
        assert visit.value("unscored.share") == 1
        visit.check_accessibility()


def test_a_page_without_the_new_fields(browser: Browser) -> None:
    """A document without models and troubles is shown all the same."""
    with Running(pair(Reply("41"), Reply("42"))) as (gateway, _), Visit(browser) as visit:
        document = get(gateway, "/data").json
        for key in ("models", "troubles"):
            del document[key]
        visit.page.route("**/dashboard/data*", lambda route: route.fulfill(json=document))
        visit.page.goto(f"{gateway.url}/dashboard")
        expect(visit.page.locator("h1")).to_have_text("homework ")
        for name in ("Troubles", "Models"):
            expect(visit.page.get_by_role("region", name=name)).to_be_hidden()


HEALTH: dict[str, Any] = {
    "ok": False,
    "error": "status 503 \u202e\u0007<b>",
    "since": 1_700_000_000.0,
    "failures": 5,
    "kinds": [{"kind": "busy", "status": 503, "count": 4}, {"kind": "timeout", "status": None, "count": 1}],
    "last": {"kind": "busy", "status": 503, "error": "status 503", "at": 1_700_000_100.0},
}


def test_the_health_of_each_model(browser: Browser) -> None:
    """A model that is down unfolds the list: its error, since when, and its failures by kind and status."""
    again = {**HEALTH, "ok": True, "error": None}
    with Running(pair(Reply("41"), Reply("42"))) as (gateway, _), Visit(browser, PHONE) as visit:
        document = get(gateway, "/data").json
        document["models"] = {"small": {"health": HEALTH}, "large": {"health": again}, "spare": {}}
        visit.page.route("**/dashboard/data*", lambda route: route.fulfill(json=document))
        visit.page.goto(f"{gateway.url}/dashboard")
        models = visit.page.get_by_role("region", name="Models")
        expect(models.locator("summary")).to_have_text("3 models: small fails")
        small, large = models.locator('tr[data-model="small"]'), models.locator('tr[data-model="large"]')
        expect(small).to_contain_text("4 × busy (status 503), 1 × timeout")
        expect(small).to_contain_text("status 503 \\u{202e}\\u{7}<b>")
        expect(small.locator(".pill")).to_have_text("fails")
        expect(large.locator(".pill")).to_have_text("answers")
        expect(models.locator('tr[data-model="spare"] .pill')).to_have_text("no failure so far")
        visit.check_accessibility()
        models.locator("summary").click()
        document["generated"] += 5
        expect(small).to_be_hidden()


def test_troubles_of_models() -> None:
    """Only models that fail, or whose state is not known and that have failed; with what to do."""
    models: dict[str, dict[str, Any]] = {
        "down": {"health": HEALTH},
        "up": {"health": {**HEALTH, "ok": True}},
        "unknown": {"health": {"ok": None, "failures": 2}},
        "unused": {"health": {"ok": None, "failures": 0}},
        "silent": {},
    }
    down, unknown = model_troubles(models, {"down": ["a", "b"]})
    assert down.what.startswith("model down fails: status 503")
    assert down.what.endswith("4 × busy (status 503), 1 × timeout")
    assert (down.since, down.count, down.cost) == (1_700_000_000.0, 5, "used by: a, b")
    assert down.remedy == f"{UPSTREAM['busy']}; {UPSTREAM['timeout']}"
    assert (unknown.what, unknown.since, unknown.count) == ("model unknown fails", None, 2)
    assert "gateway's log" in unknown.remedy


def test_a_store_that_fails() -> None:
    """It is the first trouble, with its cause, since when, what it costs and what to do."""
    with Running(pair(Reply("41"), Reply("42"))) as (gateway, _):
        assert get(gateway, "/data").json["troubles"] == []
        gateway.service.store_record.failed(StoreError("disk full"))
        trouble = get(gateway, "/data").json["troubles"][0]
        status = get_json(f"{gateway.url}/v1/status")["store"]
        gateway.service.store_record.works_again()
        assert get(gateway, "/data").json["troubles"] == []
    assert trouble == store_trouble(status).to_json()
    assert trouble["what"] == "the store has failed: disk full"
    assert "no request is answered" in trouble["cost"]
    assert trouble["since"] > 0


def test_constant_scores() -> None:
    """Many different drafts with exactly one score are a trouble, until another score comes."""
    drafts = iter([Reply(f"answer {number}", probability=0.6) for number in range(MANY_DRAFTS)] + [Reply("41")])
    with Running(pair(lambda _: next(drafts), Reply("42"))) as (gateway, _):
        ask(gateway, MANY_DRAFTS - 1)
        assert get(gateway, "/data").json["troubles"] == []
        ask(gateway, 1)
        (trouble,) = get(gateway, "/data").json["troubles"]
        assert "route homework: the latest 20 drafts" in trouble["what"]
        assert "all have the uncertainty 0.4" in trouble["what"]
        assert trouble["cost"]
        assert "configure another score" in trouble["remedy"]
        ask(gateway, 1)
        assert get(gateway, "/data").json["troubles"] == []


def test_requests_without_a_score_now_and_then() -> None:
    """A single one is no trouble, a tenth of the latest is, and it ends by itself; the cost is estimated."""
    router, history = Router(0.1, seed=1), History()
    feed(router, history, [(0.5, 0.0)] * 100)
    game = ScoredGame("homework", router.step, history, tokens_saved=lambda: 200.0)
    history.unscored.withdrawn("n")
    assert unscored_troubles([game]) == []
    for _ in range(12):
        history.unscored.withdrawn("no-score", at=7.0)
        history.unscored.scored()
    (trouble,) = unscored_troubles([game])
    assert trouble.what == "route homework: 11 % of the latest requests have no score (12 × no-score, 1 × n)"
    assert trouble.cost.endswith("about 26 tokens more than with scores so far")
    assert (trouble.since, trouble.count) == (7.0, 13)
    for _ in range(50):
        history.unscored.scored()
    assert unscored_troubles([game]) == []
    assert missed_tokens(0, 0.0, 5) == missed_tokens(10, -5.0, 5) == 0.0


def test_segments_are_counted_together() -> None:
    """A route with many segments in trouble has one line."""
    games = []
    for number in range(1000):
        router, history = Router(0.1, seed=1), History()
        if number % 2:
            history.unscored.withdrawn("no-score", at=float(number))
        wrong = ("the same", "cost", "remedy") if number < 3 else None
        games.append(ScoredGame("homework", router.step, history, lambda: 0.0, wrong))
    (unscored,), (scores,) = unscored_troubles(games), score_troubles(games)
    assert unscored.what.startswith("route homework is not routing in 500 of 1,000 segments: no draft could be scored")
    assert (unscored.since, unscored.count) == (1.0, 500)
    assert (scores.what, scores.count) == ("route homework in 3 of 1,000 segments: the same", 3)
