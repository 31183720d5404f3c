"""Money of cascades: each model's tokens at its own price, compared with always asking the last model."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.config.models.prices import Price
from bpac.gateway.games.money.savings import Prices, Savings
from bpac.routing.journal.entries import Resolved
from bpac.testing import Request, ScriptedServer
from bpac.wire.usage import Usage
from tests.gateway.billing import Bills
from tests.gateway.chat.test_cascade import ask, cascade, scripted, seeded
from tests.gateway.games.test_savings_bounds import decided
from tests.gateway.running import RunningGateway
from tests.gateway.serving import main, to_toml

FREE = Price(0.0, 0.0)
PRICES = Prices(None, Price(100.0), FREE, (Price(1.0), Price(10.0)))


def played() -> Savings:
    """One round that the last model answered, and one that the second model answered and no coin audited."""
    savings = Savings()
    savings.add(decided(1, 1.0, True), {"stage_1_tokens": 4, "draft_tokens": 4})
    savings.add(Resolved(1, 0.0), {"expert_tokens": 50, "propensity": 1.0, "stage_2_tokens": 9, "draft_tokens": 9})
    savings.add(decided(2, 0.5, False), {"stage_1_tokens": 5, "stage_2_tokens": 6, "draft_tokens": 11})
    return savings


def test_each_model_is_charged_its_own_price() -> None:
    """Also those that an audit asks behind the caller's back."""
    savings = played()
    report = savings.report(PRICES)
    drafts = (4 + 5) * 1.0 + (9 + 6) * 10.0
    assert report.money_spent == pytest.approx((drafts + 50 * 100.0) / 1e6)
    assert report.money_covers == "output"
    assert report.money_saved_at_least == pytest.approx(-drafts / 1e6)
    assert Savings.from_json(json.loads(json.dumps(asdict(savings)))).report(PRICES) == report


def test_a_draft_whose_model_is_not_known_lies_between_the_cheapest_and_the_dearest() -> None:
    """A draft without a decision costs at most the dearer price and at least the cheaper one."""
    savings = Savings()
    savings.add(decided(1, 1.0, True), {"stage_1_tokens": 4, "draft_tokens": 4})
    savings.add(Resolved(1, 0.0), {"expert_tokens": 50, "propensity": 1.0})
    savings.drafted(Usage(completion=7))
    report = savings.report(PRICES)
    assert report.money_saved == report.money_saved_at_least == pytest.approx(-(4 * 1.0 + 7 * 10.0) / 1e6)
    assert report.money_saved_at_most == pytest.approx(-(4 * 1.0 + 7 * 1.0) / 1e6)
    assert report.money_share_saved_at_most == pytest.approx(-11 / 5000)
    # A snapshot of an earlier version does not say whose tokens they were.
    earlier = asdict(savings)
    del earlier["stages"]
    again = Savings.from_json(json.loads(json.dumps(earlier))).report(PRICES)
    assert again.money_saved_at_least == pytest.approx(-11 * 10.0 / 1e6)


def test_money_needs_the_price_of_every_model() -> None:
    """An unknown price is not zero."""
    savings = played()
    for prices in (PRICES._replace(stages=(Price(1.0), None)), PRICES._replace(expert=None)):
        assert savings.report(prices).money_saved is None


def test_status_shows_the_bill_of_a_cascade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was spent is the vendors' bill to the token, in the gateway as in ``bpac status``."""
    bills = Bills()

    def reply(request: Request) -> dict[str, Any]:
        made, thought = scripted(request), {"draft": 0, "middle": 5, "expert": 40}[request.body["model"]]
        return {"text": made.text, "probability": made.probability, "reasoning": "hm " * thought}

    prices = {"small": (1.0, 2.0), "middle": (3.0, 10.0), "large": (20.0, 100.0)}
    with ScriptedServer(bills.script(reply)) as server:
        config = cascade(server.base_url, gateway={"store": f"sqlite:///{tmp_path / 'bpac.db'}"})
        for name, (prompt, answer) in prices.items():
            config["models"][name]["price"] = {"input": prompt, "output": answer}
        with RunningGateway(config) as gateway:
            seeded(gateway)
            for number in range(200):
                assert ask(gateway, number).status == 200
                gateway.idle()
            status = gateway.status()
    savings = status["savings"]
    billed = {name: bills[model] for name, model in (("small", "draft"), ("middle", "middle"), ("large", "expert"))}
    spent = {
        name: (prices[name][0] * bill.prompt + prices[name][1] * bill.completion) / 1e6 for name, bill in billed.items()
    }
    assert savings["money_spent"] == pytest.approx(sum(spent.values()))
    assert savings["money_covers"] == "bill"
    assert savings["money_saved_at_least"] <= savings["money_saved"] <= savings["money_saved_at_most"]
    assert savings["always_money"] - savings["money_spent"] == pytest.approx(savings["money_saved"])
    # Every answer of the last model is as long as every other, so what it was spared is known here.
    each = spent["large"] / status["stages"][-1]["asked"]
    assert status["stages"][-1]["asked"] < 180
    saved = 200 * each - sum(spent.values())
    assert savings["money_saved_at_least"] <= saved <= savings["money_saved_at_most"]
    (tmp_path / "gateway.toml").write_text(to_toml(config))
    assert main(["status", str(tmp_path / "gateway.toml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["games"][0]["savings"] == savings
