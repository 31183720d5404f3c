"""A judge is asked like every other model: with its circuit breaker, its deployments and its preset."""

from contextlib import ExitStack
from typing import Any

import pytest

from bpac.gateway.chat.experts.grading import grader_of
from bpac.gateway.config.file import Config
from bpac.gateway.health.probe import QUESTION
from bpac.testing import SILENCE, Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.measured import metric
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway

BROKEN = Reply(cut=0)
MARK = Reply("7")


class Models:
    """A draft and an expert that answer, and a judge whose reply can be changed."""

    def __init__(self, judge: Reply) -> None:
        self.judge = judge

    def __call__(self, request: Request) -> Reply:
        """The reply to a request."""
        if request.body["model"] == "judge":
            return self.judge
        return Reply("41" if request.body["model"] == "draft" else "42")


def config(url: str, *, gateway: Any = None, loss: Any = None, **judge: Any) -> dict[str, Any]:
    """A configuration whose route is graded by the model ``third``."""
    data = settings(
        url,
        gateway={"probe_timeout": 1.0, **(gateway or {})},
        model={"breaker": 2},
        loss={"name": "judge", "judge": "third", "attempts": 1, **(loss or {})},
    )
    data["models"]["third"] = {**data["models"]["large"], "model": "judge", "timeout": 1.0, **judge}
    return data


def deployed(*urls: str, **more: Any) -> dict[str, Any]:
    """The same with several deployments of the judge; the draft and the expert are at the last address."""
    data = config(urls[-1], **more)
    del data["models"]["third"]["base_url"]
    data["models"]["third"]["deployments"] = [
        {"name": name, "base_url": url} for name, url in zip("abc", urls, strict=False)
    ]
    return data


def ask(gateway: RunningGateway) -> None:
    """Have one request answered and graded."""
    assert post(gateway.url, ASK).status == 200
    gateway.idle()


def asked(models: ScriptedServer) -> int:
    """The number of requests that the judge got, without those of the gateway's own."""
    found = [one.body for one in models.requests if one.body["model"] == "judge"]
    return sum(body.get("max_tokens") is None and body["messages"] != [QUESTION] for body in found)


def health(gateway: RunningGateway) -> dict[str, Any]:
    """The health of the judge, as status shows it."""
    found = get_json(f"{gateway.url}/v1/status")["models"]["third"]["health"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpac.gateway.health.monitor.FIRST_PAUSE", 0.05)


@pytest.mark.parametrize("broken", [BROKEN, SILENCE, Reply("oops", status=500)], ids=["cut", "hangs", "500"])
def test_no_grading_waits_for_a_judge_that_is_down(broken: Reply) -> None:
    """Each draft counts as loss 1 at once, and nothing is sent; when the judge is back, it grades again."""
    script = Models(broken)
    with ScriptedServer(script) as models, RunningGateway(config(models.base_url)) as gateway:
        for _ in range(2):
            ask(gateway)
        wait_for(lambda: health(gateway)["breaker"] == "open")
        before = asked(models)
        for _ in range(3):
            ask(gateway)
        assert asked(models) == before
        assert gateway.status()["forfeits"] == {"grader failed": 5}
        script.judge = MARK
        wait_for(lambda: health(gateway)["breaker"] == "closed")
        ask(gateway)
        assert gateway.status()["forfeits"] == {"grader failed": 5}
        assert asked(models) == before + 2
        assert gateway.status()["savings"]["judge_tokens"] >= 2


def test_a_judge_that_is_slower_than_a_judgement_may_be_is_suspected() -> None:
    """The judgement ends before the time limit of one request, and yet counts as a failure of the judge."""
    with (
        ScriptedServer(Models(SILENCE)) as models,
        RunningGateway(config(models.base_url, loss={"timeout": 0.2}, timeout=60.0)) as gateway,
    ):
        for number in (1, 2):
            ask(gateway)
            assert metric(gateway, "bpac_upstream_failures_total", model="third", kind="timeout") == number
        wait_for(lambda: health(gateway)["breaker"] == "open")
        assert gateway.status()["forfeits"] == {"grader failed": 2}


def test_the_deployments_of_a_judge_are_tried() -> None:
    """The second one grades if the first fails; each failure is counted once, and the model is well."""
    with ExitStack() as opened:
        bad, good = (opened.enter_context(ScriptedServer(Models(judge))) for judge in (BROKEN, MARK))
        gateway = opened.enter_context(RunningGateway(deployed(bad.base_url, good.base_url, breaker=0)))
        ask(gateway)
        assert gateway.status()["forfeits"] == {}
        assert (asked(bad), asked(good)) == (2, 2)
        assert metric(gateway, "bpac_upstream_failures_total", model="third", kind="connection") == 2
        assert metric(gateway, "bpac_deployment_answers_total", model="third", deployment="b") == 2
        assert health(gateway)["ok"]
        assert gateway.status()["savings"]["judge_tokens"] == 2


@pytest.mark.parametrize("judge", [Reply("no idea"), SILENCE], ids=["no mark", "hangs"])
def test_a_judge_with_deployments_that_gives_no_mark_is_seen(judge: Reply) -> None:
    """Its server answers, or is not waited for any longer: the status of the model says it all the same."""
    with ExitStack() as opened:
        models = opened.enter_context(ScriptedServer(Models(judge)))
        options: dict[str, Any] = {"loss": {"timeout": 0.3}, "timeout": 60.0, "breaker": 0}
        gateway = opened.enter_context(RunningGateway(deployed(models.base_url, models.base_url, **options)))
        ask(gateway)
        assert gateway.status()["forfeits"] == {"grader failed": 1}
        assert not health(gateway)["ok"]


def test_requests_to_a_judge_have_what_its_model_needs() -> None:
    """The query and the preset of its model; the game is the same as without a query."""

    def script(request: Request) -> Reply:
        if request.body["model"] != "judge":
            return Reply("42")
        off = request.body.get("chat_template_kwargs") == {"enable_thinking": False}
        return MARK if off and request.path.endswith("?api-version=1") else Reply("", status=400)

    needs: dict[str, Any] = {"preset": "qwen3-vllm", "thinking": "off", "query": {"api-version": "1"}}
    with ScriptedServer(script) as models, RunningGateway(config(models.base_url, **needs)) as gateway:
        ask(gateway)
        assert gateway.status()["forfeits"] == {}
        game = gateway.status()["game"]
        assert gateway.reload(config(models.base_url, **{**needs, "query": {}}))
        assert gateway.status()["game"] == game


def test_a_judge_with_another_model_on_a_deployment_is_another_judge() -> None:
    """Its marks may be others, so a new game begins; another address of the same model changes nothing."""

    def terms(data: dict[str, Any]) -> str:
        route = Config.read(data).routes["homework"]
        return route.terms(route.new_router())

    first, second = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"
    data = deployed(first, second)
    assert terms(data) == terms(config(first))
    data["models"]["third"]["deployments"][1]["model"] = "another"
    assert terms(data) != terms(config(first))


def test_no_other_grader_takes_the_place_of_a_judge() -> None:
    """A route with a judge has no grader before its models are open."""
    with pytest.raises(TypeError, match="judged_by"):
        grader_of(Config.read(config("http://127.0.0.1:1/v1")).routes["homework"])


def test_a_judge_is_one_of_the_models_that_are_open_after_a_reload() -> None:
    """Its breaker is the one that the status shows, and a server that it moved to is asked."""
    with (
        ScriptedServer(Models(MARK)) as models,
        ScriptedServer(Models(BROKEN)) as others,
        RunningGateway(config(models.base_url)) as gateway,
    ):
        ask(gateway)
        # Another limit opens every model anew.
        assert gateway.reload(config(models.base_url, gateway={"max_answer": 1_000_000}))
        ask(gateway)
        assert asked(models) == 4
        moved = config(models.base_url, gateway={"max_answer": 1_000_000})
        moved["models"]["third"]["base_url"] = others.base_url
        assert gateway.reload(moved)
        for _ in range(2):
            ask(gateway)
        assert asked(models) == 4
        wait_for(lambda: health(gateway)["breaker"] == "open")
        before = asked(others)
        ask(gateway)
        assert asked(others) == before
        assert gateway.status()["forfeits"] == {"grader failed": 3}
