"""Routes with several models: each answer is made, scored and kept or passed on; audits ask all models."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.cascade.rules import UncertaintyRule
from bpac.routing.cascade.walk import Walk
from bpac.routing.coins import SeededCoins
from bpac.routing.tickets.ticket import Ticket
from bpac.testing import Reply, Request, Script, ScriptedServer
from tests.gateway.billing import Bills
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.games.test_tickets import router_of
from tests.gateway.measured import metric
from tests.gateway.raw import open_chat, post
from tests.gateway.running import RunningGateway
from tests.gateway.serving import to_toml

MODELS = {"small": "draft", "middle": "middle", "large": "expert"}


def cascade(base_url: str, *, gateway: Any = None, **route: Any) -> dict[str, Any]:
    """A configuration with one route, ``homework``, of three models on one scripted server."""
    found = settings(base_url, gateway=gateway)
    ours = found["models"]["small"]
    found["models"] = {name: {**ours, "model": model} for name, model in MODELS.items()}
    homework = {"models": list(MODELS), "epsilon": 0.2, "score": "perplexity", "call_prices": [1, 4, 20], **route}
    found["routes"] = {"homework": homework}
    return found


@contextmanager
def running(script: Script, **options: Any) -> Iterator[tuple[RunningGateway, ScriptedServer]]:
    """A gateway with the cascade, in front of scripted models."""
    with ScriptedServer(script) as server, RunningGateway(cascade(server.base_url, **options)) as gateway:
        yield gateway, server


def luck(text: str) -> float:
    """A number in [0, 1) that depends on a text only."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


def scripted(request: Request) -> Reply:
    """Models that know more the larger they are, and are surer of what they know."""
    question = request.body["messages"][-1]["content"]
    hard = luck(question)
    limit = {"draft": 0.5, "middle": 0.9, "expert": 1.0}[request.body["model"]]
    knows = hard < limit
    return Reply("42" if knows else "41", probability=0.95 if knows else 0.4)


def ask(gateway: RunningGateway, number: int, **more: Any) -> Any:
    """Ask a question of its own."""
    return post(gateway.url, {"model": "homework", "messages": [{"role": "user", "content": f"{number}?"}]} | more)


def seeded(gateway: RunningGateway, seed: int = 3) -> None:
    """Use the same coins in every run."""
    router_of(gateway)._proposals._coins = SeededCoins(seed)


def test_each_model_answers_what_it_is_sure_of() -> None:
    """Headers, status and metrics say which model answered, and the answers are right."""
    with running(scripted) as (gateway, server):
        seeded(gateway)
        replies = []
        for number in range(240):
            replies.append(ask(gateway, number))
            gateway.idle()
        assert {got.status for got in replies} == {200}
        models = [got.headers["x-bpac-model"] for got in replies]
        stages = [int(got.headers["x-bpac-stage"]) for got in replies]
        assert set(models[:20]) == {"large"}
        assert set(models) == set(MODELS)
        # The last model answers everything at first; once others are certified, they answer most.
        assert sum(model != "large" for model in models[160:]) >= 60
        by = {1: "draft", 2: "draft", 3: "expert"}
        assert all(got.headers["x-bpac-answered-by"] == by[stage] for got, stage in zip(replies, stages, strict=True))
        status = gateway.status()
        (game,) = get_json(f"{gateway.url}/dashboard/data")["games"]
        assert game["stages"] == status["stages"]
        assert [stage["model"] for stage in status["stages"]] == list(MODELS)
        assert [stage["answered"] for stage in status["stages"]] == [stages.count(stage) for stage in (1, 2, 3)]
        for stage, name in enumerate(MODELS, start=1):
            if stages.count(stage):
                labels = {"route": "homework", "stage": str(stage), "model": name}
                assert metric(gateway, "bpac_stage_answers_total", **labels) == stages.count(stage)
        late = replies[160:]
        assert sum(b"42" in got.body for got in late) / len(late) > 0.75
        # Fewer calls of the last model than requests: the cascade saves something.
        assert sum(request.body["model"] == "expert" for request in server.requests) < 240


def test_a_model_that_fails_is_passed_over() -> None:
    """With a model down, the others answer; with all but the last down, requests are no rounds."""

    def broken(request: Request) -> Reply:
        model, alone = request.body["model"], "alone" in json.dumps(request.body["messages"])
        if model == "draft" or (alone and model == "middle"):
            return Reply("no", status=500)
        return scripted(request)

    with running(broken) as (gateway, _):
        seeded(gateway)
        assert get_json(f"{gateway.url}/dashboard/data")["games"][0]["clean_rounds_needed"] > 0
        first = ask(gateway, 1)
        alone = post(gateway.url, {"model": "homework", "messages": [{"role": "user", "content": "alone"}]})
        gateway.idle()
        assert first.status == alone.status == 200
        status = gateway.status()
        assert status["owed"] == 0


def test_streams_and_restarts(tmp_path: Path) -> None:
    """Streamed answers carry the same headers, and a restarted gateway goes on where it stood."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with running(scripted, gateway=store) as (gateway, _):
        for number in range(30):
            got = ask(gateway, number, stream=bool(number % 2))
            assert got.status == 200
            assert got.headers["x-bpac-stage"] in ("1", "2", "3")
        gateway.idle()
        before = gateway.status()
    with running(scripted, gateway=store) as (gateway, _):
        after = gateway.status()
        assert isinstance(router_of(gateway), CascadeRouter)
        assert (after["steps"], after["threshold"], after["stages"]) == (
            before["steps"],
            before["threshold"],
            before["stages"],
        )
        assert ask(gateway, 99).status == 200


@pytest.mark.parametrize(
    ("route", "message"),
    [
        ({"models": ["small"]}, "at least two models"),
        ({"models": ["small", "huge", "large"]}, "there is no model 'huge'"),
        ({"models": ["small", "large", "small"]}, "lists a model twice"),
        ({"draft": "small"}, "leave draft out"),
        ({"call_prices": [1, 2]}, "call_prices has 2 prices, and models has 3"),
        ({"call_prices": [1, 0, 3]}, "price must be a finite number above 0"),
        ({"call_prices": [1, 8, 4]}, "call_prices falls from 8 for models.middle to 4 for models.large"),
        ({"policy": "paper"}, "policy is for routes with two models"),
        ({"minimise": "money"}, "minimise is for routes with two models"),
        ({"loss": "external"}, "needs that of every model"),
        ({"models": ["small", "large"]}, "call_prices is for routes with more than two models"),
    ],
)
def test_wrong_settings_are_refused_by_name(route: dict[str, Any], message: str) -> None:
    """Each mistake is named with its place in the file."""
    with pytest.raises(SettingsError, match=message):
        Config.read(cascade("http://127.0.0.1:1/v1", **route))


def test_two_models_of_one_effort_are_refused() -> None:
    """A caller who names that effort could get either; the message names both and says what to do."""
    values = cascade("http://127.0.0.1:1/v1")
    efforts = {"small": {"reasoning_effort": "low"}, "large": {"chat_template_kwargs": {"reasoning_effort": "low"}}}
    for name, body in efforts.items():
        values["models"][name]["body"] = body
    said = "models.small and models.large both have the reasoning_effort low: give each .* or leave it out of one"
    with pytest.raises(SettingsError, match=rf"routes.homework.*models: {said}"):
        Config.read(values)
    values["models"]["large"]["body"] = {"reasoning_effort": "high"}
    assert Config.read(values).routes["homework"].models[0].effort == "low"


def test_a_caller_who_leaves_at_the_second_model_does_not_take_the_first_off_the_bill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tokens of all models that were asked are counted, although no decision is made."""
    usual, bills = CascadeRouter.walk, Bills()

    def both(self: CascadeRouter, ticket: Ticket | None = None) -> Walk:
        return Walk(UncertaintyRule((1, 2)), usual(self, ticket).terms, 3, 1, issued=True)

    def reply(request: Request) -> dict[str, Any]:
        return {"text": "it is 42", "delay": 5.0 if request.body["model"] == "middle" else 0.0}

    monkeypatch.setattr(CascadeRouter, "walk", both)
    with running(bills.script(reply)) as (gateway, server):
        caller = open_chat(gateway.url, {"model": "homework", "messages": [{"role": "user", "content": "6 * 7 ?"}]})
        wait_for(lambda: [request.body["model"] for request in server.requests] == ["draft", "middle"])
        caller.close()
        gateway.idle()
        counted = gateway.status()["savings"]["usage"]["draft"]
    assert counted["completion_tokens"] >= bills["draft"].completion > 0
    assert counted["prompt_tokens"] >= bills["draft"].prompt + 4


def test_two_models_are_a_pair() -> None:
    """A list of two models is the same as a draft and an expert."""
    values = cascade("http://127.0.0.1:1/v1", models=["small", "large"])
    del values["routes"]["homework"]["call_prices"]
    route = Config.read(values).routes["homework"]
    assert (route.draft.name, route.expert.name, route.models) == ("small", "large", ())


def test_export_and_audit_show_which_model_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exported journal is recomputed without differences, and a table has one set of columns per model."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(scripted) as server:
        config = cascade(server.base_url, gateway=store)
        with RunningGateway(config) as gateway:
            for number in range(60):
                ask(gateway, number)
            gateway.idle()
    (tmp_path / "gateway.toml").write_text(to_toml(config))

    def run(*command: str) -> str:
        assert main([*command]) == 0
        return capsys.readouterr().out

    toml, journal, table = (str(tmp_path / name) for name in ("gateway.toml", "journal.jsonl", "table.csv"))
    run("export", toml, "--out", journal)
    audit = json.loads(run("audit", journal, "--json"))
    assert (audit["rounds"], audit["differences"]) == (60, [])
    assert sum(audit["answered"].values()) == 60
    assert "answered by stage: 1 " in run("audit", journal)
    run("export", toml, "--format", "table", "--out", table)
    header = Path(table).read_text().splitlines()[0]
    assert header == "step,uncertainty_1,loss_1,tokens_1,uncertainty_2,loss_2,tokens_2,tokens_3"
    run("export", toml, "--format", "table", "--all-audits", "--out", table)
    assert Path(table).read_text().splitlines()[0].endswith(",propensity")
    status = json.loads(run("status", toml, "--json"))["games"][0]
    assert [stage["model"] for stage in status["stages"]] == list(MODELS)
    assert status["cost"]["always"] == 20.0
    assert status["cost"]["mean"] == pytest.approx(
        sum(stage["asked"] * stage["call_price"] for stage in status["stages"]) / 60
    )
    assert "answered by small" in run("status", toml)
    assert main(["warm", toml, table]) == 2
    assert "homework is a cascade: start the gateway without bpac warm" in capsys.readouterr().err
