"""The gateway's totals are those of the model servers' own bills, to the token, whatever happens to the calls."""

from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.games.restoring.restoring import folded
from bpac.stores import open_store
from bpac.testing import Request, ScriptedServer
from tests.gateway.billing import Bills
from tests.gateway.configured import settings, wait_for
from tests.gateway.law import Question
from tests.gateway.measured import metric
from tests.gateway.raw import open_chat, post
from tests.gateway.running import RunningGateway
from tests.gateway.serving import main, to_toml

ASK: dict[str, Any] = {"model": "homework", "messages": [{"role": "user", "content": "how much is 6 * 7 ?"}]}
FIRST = {"name": "mean_token_probability", "first_tokens": 4}
PRICED = {"price": {"input": 1.0, "cached_input": 0.25, "output": 4.0}}
NAMES = {"small": "draft", "large": "expert", "judging": "judge"}


def config_for(base_url: str, store: Path | None = None, **route: Any) -> dict[str, Any]:
    """A configuration with prices and a model for judging."""
    gateway = {"currency": "EUR", **({"store": f"sqlite:///{store}"} if store else {})}
    config = settings(base_url, gateway=gateway, model=PRICED, **route)
    config["models"]["judging"] = {**config["models"]["large"], "model": "judge"}
    return config


def assert_billed(gateway: RunningGateway, bills: Bills) -> dict[str, Any]:
    """The totals of the gateway are those of the bills, also in its metrics; returns its savings."""
    gateway.idle()
    savings: dict[str, Any] = gateway.status()["savings"]
    for name in NAMES.values():
        billed, counted = bills[name], savings["usage"][name]
        assert counted["prompt_tokens"] == billed.prompt, name
        assert counted["cached_tokens"] == billed.cached, name
        assert counted["completion_tokens"] == billed.completion, name
        for kind, tokens in counted.items():
            if kind != "completion_tokens":
                assert metric(gateway, f"bpac_{name}_{kind}_total", route="homework", segment="") == tokens
    spent = sum((bills[name].prompt - bills[name].cached) * 1.0 for name in NAMES.values())
    spent += sum(bills[name].cached * 0.25 + bills[name].completion * 4.0 for name in NAMES.values())
    assert savings["money_spent"] == pytest.approx(spent / 1e6)
    return savings


def test_a_whole_day_is_on_the_bill_to_the_token(tmp_path: Path) -> None:
    """Retries, cut-off and cancelled answers, caching, judges without a verdict: all totals are those of the bill."""
    bills = Bills()
    trouble: dict[str, list[dict[str, Any]]] = {"draft": [], "expert": [], "judge": []}

    def reply(request: Request) -> dict[str, Any]:
        name = request.body["model"]
        usual: dict[str, dict[str, Any]] = {
            "draft": {"text": "it is 41", "probability": 0.5, "cached": 2},
            "expert": {"text": "it is 42", "reasoning": "seven", "cached": 3},
            "judge": {"text": "7"},
        }
        return usual[name] | (trouble[name].pop(0) if trouble[name] else {})

    # Both answers are marked at the same time, so one mark may get both replies without one: it needs a third attempt.
    # Without it there would be no verdict, and the request for the other mark would be cancelled on its way.
    judged = {"name": "judge", "judge": "judging", "attempts": 3}
    with ScriptedServer(bills.script(reply)) as models:
        config = config_for(models.base_url, tmp_path / "bpac.db", loss=judged)
        for model in config["models"].values():
            model["retries"] = 2
        (tmp_path / "gateway.toml").write_text(to_toml(config))
        with RunningGateway(config) as gateway:
            for stream in (False, True):
                assert post(gateway.url, ASK | {"stream": stream}).status == 200
                assert assert_billed(gateway, bills)["usage"]["draft"]["estimated_tokens"] == 0
            # Refused attempts are not billed; one whose answer is lost on the way is.
            for name in NAMES.values():
                trouble[name] += [{"status": 503}, {"cut": 1, "cached": 0}]
                assert post(gateway.url, ASK).status == 200
                assert assert_billed(gateway, bills)["usage"][name]["estimated_tokens"] > 0
            # A judge that gives no mark is asked again, and paid twice.
            trouble["judge"] += [{"text": "perhaps"}] * 2
            assert post(gateway.url, ASK).status == 200
            # The expert breaks off its stream; a draft without a score; an expert that refuses.
            trouble["expert"].append({"cut": 4, "cached": 0})
            assert post(gateway.url, ASK | {"stream": True}).status == 200
            trouble["draft"].append({"logprobs": False})
            assert post(gateway.url, ASK).status == 200
            trouble["expert"].append({"status": 400})
            assert post(gateway.url, ASK).status == 400
            assert post(gateway.url, ASK | {"n": 2}).status == 200
            before = assert_billed(gateway, bills)
        with RunningGateway(config) as gateway:
            assert assert_billed(gateway, bills) == before
        store = open_store(config["gateway"]["store"], read_only=True)
        assert folded(store, store.games()[-1]).savings.report().to_json()["usage"] == before["usage"]
        store.close()
        assert main(["status", str(tmp_path / "gateway.toml")]) == 0


def test_requests_that_are_cancelled_on_their_way_are_counted_as_estimates() -> None:
    """Without one mark there is no verdict, and the request for the other is cancelled: it may never have arrived.

    The gateway cannot know, so it counts such a request. It never counts less than the bill, or more without saying so.
    """
    bills = Bills()

    def reply(request: Request) -> dict[str, Any]:
        return {"text": "perhaps"} if request.body["model"] == "judge" else {"text": "it is 42", "probability": 0.5}

    with ScriptedServer(bills.script(reply)) as models:
        loss = {"name": "judge", "judge": "judging", "attempts": 1}
        with RunningGateway(config_for(models.base_url, loss=loss)) as gateway:
            for _ in range(5):
                assert post(gateway.url, ASK).status == 200
                gateway.idle()
            counted, billed = gateway.status()["savings"]["usage"]["judge"], bills["judge"]
    more = counted["prompt_tokens"] - billed.prompt, counted["completion_tokens"] - billed.completion
    assert min(more) >= 0
    assert sum(more) <= counted["estimated_tokens"]


def test_a_cut_off_draft_is_on_the_bill() -> None:
    """A draft whose first tokens are not accepted is cancelled: what was generated until then is paid for."""
    bills, cut_off = Bills(), {"text": "no idea " * 20, "probability": 0.5, "stall_after": 4}

    def reply(request: Request) -> dict[str, Any]:
        return cut_off if request.body["model"] == "draft" and request.number > 1 else {"text": "it is 42"}

    with ScriptedServer(bills.script(reply)) as models:
        config = config_for(models.base_url, score=FIRST, policy="always", on_takeover="cancel")
        with RunningGateway(config) as gateway:
            assert post(gateway.url, ASK | {"stream": True}).status == 200
            assert assert_billed(gateway, bills)["usage"]["draft"]["estimated_tokens"] == 0
            assert b"42" in post(gateway.url, ASK | {"stream": True}).body
            savings = assert_billed(gateway, bills)
            assert savings["usage"]["draft"]["estimated_tokens"] == 4 + bills["draft"].prompt // 2
        bills.resume.set()


@pytest.mark.parametrize("stream", [True, False])
def test_a_caller_who_leaves_does_not_take_tokens_off_the_bill(stream: bool) -> None:
    """The draft that a caller did not wait for is paid for, and so counted."""
    bills = Bills()

    def reply(request: Request) -> dict[str, Any]:
        late = request.number > 1
        return {"text": "it is 42 or so", "delay": 5.0 * (late and not stream), "stall_after": 3 if late else None}

    with ScriptedServer(bills.script(reply)) as models:
        config = config_for(models.base_url, score=FIRST | {"first_tokens": 3}, policy="never")
        with RunningGateway(config) as gateway:
            assert post(gateway.url, ASK | {"stream": stream}).status == 200
            assert_billed(gateway, bills)
            caller = open_chat(gateway.url, ASK | {"stream": stream})
            wait_for(lambda: len(models.requests) == 2)
            if stream:
                received = b""
                while b"42" not in received:
                    received += caller.recv(65_536)
            else:  # it is generated to its end, and billed, although nobody reads it
                bills.adding("draft")(bills["draft"])
            caller.close()
            assert_billed(gateway, bills)
        bills.resume.set()


def test_long_prompts_at_equal_prices_cost_money(tmp_path: Path) -> None:
    """With prompts of 10,000 tokens and equal prices the route costs money: the bill and the gateway both say so."""
    bills = Bills()

    def reply(request: Request) -> dict[str, Any]:
        right = int(request.question.split()[-1]) % 5 > 0
        if request.body["model"] == "expert":
            return {"text": "it is 42", "reasoning": "so it is " * 7}
        return {"text": "it is 42" if right else "it is 41", "probability": 0.95 if right else 0.5}

    words = "word " * 9_999
    with ScriptedServer(bills.script(reply)) as models:
        config = config_for(models.base_url, tmp_path / "bpac.db", epsilon=0.4)
        config["models"]["small"]["price"] = config["models"]["large"]["price"] = {"input": 1.0, "output": 4.0}
        (tmp_path / "gateway.toml").write_text(to_toml(config))
        with RunningGateway(config) as gateway:
            rounds = 0
            # What the expert would have generated is known from audits of kept drafts, which take a while to come.
            while rounds < 150 or (gateway.status()["savings"]["tokens_saved"] <= 0.0 and rounds < 1000):
                asked = [{"role": "user", "content": f"{words}{rounds}"}]
                assert post(gateway.url, Question(rounds).body | {"messages": asked}).status == 200
                rounds += 1
            gateway.idle()
            savings = gateway.status()["savings"]
    always = rounds * (10_000 * 1.0 + 24 * 4.0) / 1e6
    spent = sum(bills[name].prompt * 1.0 + bills[name].completion * 4.0 for name in ("draft", "expert")) / 1e6
    assert bills["draft"].prompt == rounds * 10_000
    assert spent > always
    # What is saved in generated tokens hides it.
    assert savings["tokens_saved"] > 0.0
    assert savings["money_covers"] == "bill"
    assert savings["money_spent"] == pytest.approx(spent)
    assert savings["money_saved_at_least"] <= always - spent <= savings["money_saved_at_most"] < 0.0
    assert savings["money_saved"] < 0.0 > savings["money_share_saved"]
    assert main(["status", str(tmp_path / "gateway.toml")]) == 0
