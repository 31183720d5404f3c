"""What an operator sees of refusals, of a loss that does not suit the traffic, and of deployments and probes."""

from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from bpac.gateway.telemetry.prose_watch import FEWEST
from bpac.testing import Reply, Request, ScriptedServer
from tests.dashboard.browser import DESKTOP, PHONE, Visit
from tests.dashboard.test_scripts import declared
from tests.dashboard.traffic import get
from tests.gateway.chat.test_prose_warning import ONE, OTHER
from tests.gateway.configured import OPERATOR, get_json, settings, wait_for
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair

SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])


def strict(request: Request) -> Reply:
    """An expert that refuses requests with a temperature."""
    refused = Reply("temperature is not supported", status=400)
    return refused if "temperature" in request.body else Reply("42")


@SIZES
def test_refusals_by_reason(browser: Browser, size: tuple[int, int]) -> None:
    """A trouble above everything, and a tile with the share, the reasons and what to do about each."""
    with Running(pair(Reply("42"), strict)) as (gateway, _), Visit(browser, size) as visit:
        for temperature in [None] * 4 + [0] * 12:
            post(gateway.url, ASK if temperature is None else ASK | {"temperature": temperature})
        gateway.idle()
        visit.page.goto(f"{gateway.url}/dashboard")
        trouble = visit.page.get_by_role("region", name="Troubles")
        expect(trouble).to_contain_text("the expert refused 11")
        expect(trouble).to_contain_text("400: it names temperature")
        expect(trouble).to_contain_text("drop or rename it in the expert's table")
        tile = visit.page.locator('[data-tile="refused"]')
        expect(tile).to_contain_text("400: it names temperature: the expert's server does not accept temperature")
        assert visit.value("refused") == visit.value("refusals.reasons.400: it names temperature") == 12
        assert visit.value("refusals.share") == 0.75
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        visit.check_accessibility()


@SIZES
def test_prose_is_a_trouble(browser: Browser, size: tuple[int, int]) -> None:
    """A loss that cannot compare prose: a trouble with its remedy and a metric, until other answers come."""
    with Running(pair(Reply(ONE), Reply(OTHER))) as (gateway, models), Visit(browser, size) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        troubles = visit.page.get_by_role("region", name="Troubles")
        expect(visit.page.locator("h1")).to_have_text("homework ")
        expect(troubles).to_be_hidden()
        assert metric(gateway, "bpac_warnings", route="homework") == 0
        for _ in range(FEWEST):
            assert post(gateway.url, ASK).status == 200
        gateway.idle()
        expect(troubles).to_contain_text(f'{FEWEST} of the last {FEWEST} answers that loss = "answer" compared are')
        expect(troubles).to_contain_text("No threshold can be certified, and the expert answers every request.")
        expect(troubles).to_contain_text('What to do: Set loss = { name = "judge", judge = … } or loss = "embedding"')
        expect(troubles).to_contain_text(f"counted {FEWEST} times.")
        assert metric(gateway, "bpac_warnings", route="homework") == 1
        (warning,) = get_json(f"{gateway.url}/v1/status")["warnings"]
        document = get(gateway, "/data").json
        assert 0 <= document["generated"] - warning["since"] < 600
        assert document["troubles"][0]["since"] == warning["since"]
        models.script = pair(Reply("41"), Reply("42"))
        for _ in range(FEWEST + 1):
            post(gateway.url, ASK)
        gateway.idle()
        assert metric(gateway, "bpac_warnings", route="homework") == 0
        assert get(gateway, "/data").json["troubles"] == []


def deployed(good: str, gone: str) -> dict[str, Any]:
    """A configuration whose expert has two deployments, one of which is down, and whose models are probed."""
    config = settings(good, gateway={"probe": True, "probe_timeout": 2.0})
    del config["models"]["large"]["base_url"]
    servers = [{"name": "east", "base_url": good}, {"name": "west", "base_url": gone}]
    config["models"]["large"]["deployments"] = servers
    return config


@SIZES
def test_deployments_and_probes(browser: Browser, size: tuple[int, int]) -> None:
    """The table of models: each deployment, up or down, with its answers; and what the latest probe found."""
    with ExitStack() as opened:
        models = opened.enter_context(ScriptedServer(pair(Reply("42", logprobs=False), Reply("42"))))
        gateway = opened.enter_context(RunningGateway(deployed(models.base_url, "http://127.0.0.1:9/v1")))
        visit = opened.enter_context(Visit(browser, size))
        for _ in range(3):
            assert post(gateway.url, ASK).status == 200
        gateway.idle()
        wait_for(lambda: gateway.service.models()["large"]["deployments"][1]["failures"] > 0)
        visit.page.goto(f"{gateway.url}/dashboard")
        region = visit.page.get_by_role("region", name="Models")
        region.locator("summary").click()
        small, large = region.locator('tr[data-model="small"]'), region.locator('tr[data-model="large"]')
        expect(large.locator(".deployments")).to_contain_text("east: up, 3 answers")
        expect(large.locator(".deployments")).to_contain_text("west: down, 0 answers, ")
        expect(large.locator(".probe")).to_contain_text("east: reachable, key accepted, model known")
        expect(large.locator(".probe")).to_contain_text("west: no connection to http://127.0.0.1:9/v1")
        expect(large.locator(".probe")).to_contain_text("(what to do: start the server, or correct base_url)")
        document = get(gateway, "/data").json["models"]["large"]
        assert declared("Deployment") == document["deployments"][0].keys()
        assert declared("Finding") == document["health"]["probe"][0].keys()
        expect(small.locator(".deployments")).to_have_text("–")
        expect(small.locator(".probe")).to_contain_text("log-probabilities")
        expect(small.locator(".probe")).to_contain_text("(what to do: ")
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        visit.check_accessibility()


def test_one_server_needs_no_column_of_deployments(browser: Browser) -> None:
    """It is hidden where no model has several; a model that was not probed says so."""
    with Running(pair(Reply("41"), Reply("42"))) as (gateway, _), Visit(browser) as visit:
        post(gateway.url, ASK)
        visit.page.goto(f"{gateway.url}/dashboard")
        region = visit.page.get_by_role("region", name="Models")
        region.locator("summary").click()
        expect(region.locator('tr[data-model="small"] .probe')).to_have_text("not probed")
        expect(region.locator('tr[data-model="small"] .deployments')).to_be_hidden()
        expect(region.locator("thead .deployments")).to_be_hidden()


def test_a_failing_model_is_one_trouble() -> None:
    """What its probe found about the same failure is not repeated, and the remedy is said once."""
    config = settings("http://127.0.0.1:9/v1", gateway={"probe": True, "probe_timeout": 2.0})
    with ScriptedServer(Reply("42")) as models:
        config["models"]["large"]["base_url"] = models.base_url
        with RunningGateway(config) as gateway:
            post(gateway.url, ASK)
            gateway.idle()
            troubles = get(gateway, "/data").json["troubles"]
    (about,) = [trouble for trouble in troubles if "model small" in trouble["what"]]
    assert about["what"].startswith("model small fails: ")
    assert "check" not in about["what"]
    assert "check" in about["remedy"]


@SIZES
def test_a_route_that_costs_more(browser: Browser, size: tuple[int, int]) -> None:
    """Negative shares have the sign of the other numbers, and the chart of tokens reaches up to the present."""
    with Running(pair(Reply("one two three four five 42"), Reply("42")), model={"price": 1.0}) as (gateway, _):
        for _ in range(30):
            post(gateway.url, ASK)
        gateway.idle()
        with Visit(browser, size) as visit:
            visit.page.goto(f"{gateway.url}/dashboard")
            expect(visit.page.locator('[data-tile="savings.tokens_saved"]')).to_contain_text("so far the drafts have")
            assert visit.value("savings.share_saved") < -0.5
            for name in ("savings.share_saved", "savings.money_share_saved", "savings.tokens_saved"):
                assert visit.page.locator(f'[data-field="{name}"]').inner_text().startswith("−"), name
            # The last point of the line is inside the chart.
            *_, last = visit.path("rates", "tokens").replace("L", " ").replace("M", " ").split()
            assert float(last) >= 0
            assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            visit.check_accessibility()


def test_signed_in_on_a_phone(browser: Browser) -> None:
    """The state of the page has a line of its own: beside the button to sign out there is no room for it."""
    keys = {"keys": [OPERATOR]}
    with Running(pair(Reply("41"), Reply("42")), gateway=keys) as (gateway, _), Visit(browser, PHONE) as visit:
        visit.page.goto(f"{gateway.url}/dashboard")
        visit.forgive()  # status 401 of the page that asks for a key
        visit.page.get_by_label("API key").fill("ops-key")
        visit.page.get_by_role("button", name="Sign in").click()
        expect(visit.page.locator("#state-text")).to_contain_text("Live")
        sizes = visit.page.evaluate("['#state', '.choices'].map(one => document.querySelector(one).offsetHeight)")
        assert sizes[0] < sizes[1]
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
