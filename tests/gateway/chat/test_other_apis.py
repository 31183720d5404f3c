"""A draft behind the Responses API and an expert behind the Messages API: all else is as with chat completions."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.models.api import ApiName, model_api
from bpac.models.reading import TooLong, read_answer
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, MESSAGES, RunningGateway, pair

DRAFT, EXPERT = Reply("41", probability=0.7), Reply("42", reasoning="6 times 7", cached_tokens=5)
CALLS = (
    {"id": "call_a", "type": "function", "function": {"name": "times", "arguments": '{"a": 6}'}},
    {"id": "call_b", "type": "function", "function": {"name": "plus", "arguments": '{"b": 7}'}},
)
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("times", "plus")
]


def config(base_url: str, **route: Any) -> dict[str, Any]:
    """One route, whose expert answers every request."""
    found = settings(base_url, **{"policy": "always", **route}, model={"retries": 1})
    found["models"]["small"] |= {"api": "responses", "api_key": "draft-key"}
    found["models"]["large"] |= {"api": "messages", "api_key": "expert-key", "default_max_tokens": 900}
    return found


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[RunningGateway, ScriptedServer]]:
    """One gateway for all tests of this file; each sets the script of the models."""
    with ScriptedServer(pair(DRAFT, EXPERT)) as models, RunningGateway(config(models.base_url)) as gateway:
        yield gateway, models


@pytest.fixture
def gateway(running: tuple[RunningGateway, ScriptedServer]) -> RunningGateway:
    """The gateway."""
    return running[0]


@pytest.fixture
def models(running: tuple[RunningGateway, ScriptedServer]) -> Iterator[ScriptedServer]:
    """The models, with the usual answers and no requests."""
    gateway, server = running
    server.script = pair(DRAFT, EXPERT)
    server.requests.clear()
    yield server
    gateway.idle()


def failures(gateway: RunningGateway, kind: str) -> int:
    """The failures of the expert so far, of a kind."""
    health = get_json(f"{gateway.url}/v1/status")["models"]["large"]["health"]
    return sum(one["count"] for one in health["kinds"] if one["kind"] == kind)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_official_client_gets_the_answer(gateway: RunningGateway, models: ScriptedServer, stream: bool) -> None:
    """The draft is scored by its log-probabilities, the expert answers, and both are compared: an ordinary round."""
    before = gateway.status()
    create = gateway.client().chat.completions.with_raw_response.create
    got: Any = create(model="homework", messages=MESSAGES, stream=stream)
    assert float(got.headers["x-bpac-uncertainty"]) == pytest.approx(0.3)
    answer = got.parse()
    if stream:
        said = "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
    else:
        said = answer.choices[0].message.content
        assert answer.usage.prompt_tokens_details.cached_tokens == 5
    assert said == "42"
    gateway.idle()
    after = gateway.status()
    assert (after["steps"], after["owed"], after["forfeits"]) == (before["steps"] + 1, 0, before["forfeits"])
    assert [(one.path, one.body["model"]) for one in models.requests] == [
        ("/v1/responses", "draft"),
        ("/v1/messages", "expert"),
    ]
    draft, expert = models.requests
    assert draft.headers["authorization"] == "Bearer draft-key"
    assert (expert.headers["x-api-key"], expert.body["max_tokens"]) == ("expert-key", 900)


def test_tools_work_over_two_turns(gateway: RunningGateway, models: ScriptedServer) -> None:
    """Parallel calls arrive at the caller, and their results at both models."""
    called = Reply("", tool_calls=CALLS, finish_reason="tool_calls")
    models.script = pair(called, called)
    client = gateway.client()
    first: Any = client.chat.completions.create(model="homework", messages=MESSAGES, tools=TOOLS)
    calls = first.choices[0].message.tool_calls
    assert [(call.id, json.loads(call.function.arguments)) for call in calls or ()] == [
        ("call_a", {"a": 6}),
        ("call_b", {"b": 7}),
    ]
    models.script = pair(DRAFT, EXPERT)
    models.requests.clear()
    results: Any = [{"role": "tool", "tool_call_id": call["id"], "content": "42"} for call in CALLS]
    history: Any = [*MESSAGES, first.choices[0].message.model_dump(exclude_none=True), *results]
    second = client.chat.completions.create(model="homework", messages=history, tools=TOOLS)
    assert second.choices[0].message.content == "42"
    draft, expert = models.requests
    assert [item["type"] for item in draft.body["input"][1:]] == ["function_call"] * 2 + ["function_call_output"] * 2
    assert [block["type"] for block in expert.body["messages"][2]["content"]] == ["tool_result"] * 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_what_the_api_cannot_express_is_refused(gateway: RunningGateway, models: ScriptedServer, stream: bool) -> None:
    """The caller learns which field it is; so does the operator, with a remedy, and the expert is not asked."""
    before = failures(gateway, "not_expressible")
    got = post(gateway.url, {**ASK, "stop": None, "logit_bias": {"5": 1}, "stream": stream})
    error = json.loads(got.body)["error"]
    assert (got.status, error["param"], error["code"]) == (400, "logit_bias", "not_expressible")
    assert "leave it out, or add it to drop of this model" in error["message"]
    gateway.idle()
    assert models.requests == []
    assert failures(gateway, "not_expressible") == before + 1
    last = get_json(f"{gateway.url}/v1/status")["models"]["large"]["health"]["last"]
    assert "drop of this model" in last["remedy"]


def test_a_refusal_of_the_server_has_the_body_of_a_chat_error(gateway: RunningGateway, models: ScriptedServer) -> None:
    """Clients of the chat API read it, and the status names the field."""
    models.script = pair(DRAFT, Reply("temperature: Extra inputs are not permitted", status=400))
    got = post(gateway.url, {**ASK, "temperature": 0.5})
    assert got.status == 400
    assert json.loads(got.body) == {
        "error": {
            "message": "temperature: Extra inputs are not permitted", "type": "invalid_request_error", "param": None,
            "code": None,
        }
    }  # fmt: skip
    gateway.idle()
    assert "temperature" in json.dumps(gateway.status()["refusals"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_overloaded_server_is_busy_and_asked_again(
    gateway: RunningGateway, models: ScriptedServer, stream: bool
) -> None:
    """Status 529, and the same error in place of the first event of a stream."""
    before = failures(gateway, "busy")
    event = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
    failure = Reply(raw=event) if stream else Reply("Overloaded", status=529)
    once = iter([failure])
    models.script = pair(DRAFT, lambda _: next(once, EXPERT))
    got = post(gateway.url, {**ASK, "stream": stream})
    assert (got.status, b"42" in got.body) == (200, True)
    assert failures(gateway, "busy") == before + 1


def test_an_error_within_a_stream_is_a_loss_of_1(gateway: RunningGateway, models: ScriptedServer) -> None:
    """What the caller has got cannot be taken back; even an error that blames the request is no refusal any more."""

    def expert(request: Request) -> Reply:
        events = [*EXPERT.chunks(request)][:-3]
        events.append({"type": "error", "error": {"type": "invalid_request_error", "message": "?"}})
        return Reply(raw=b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in events))

    models.script = pair(DRAFT, expert)
    before = gateway.status()
    got = post(gateway.url, {**ASK, "stream": True})
    gateway.idle()
    after = gateway.status()
    assert b"upstream_failed" in got.body
    assert after["refused"] == before["refused"]
    assert after["forfeits"] != before["forfeits"]


def test_a_request_that_the_server_faults_within_its_response_is_refused(
    gateway: RunningGateway, models: ScriptedServer
) -> None:
    """As if the status had said so: not repeated, and no loss."""
    failed = {"type": "error", "error": {"type": "invalid_request_error", "message": "no such image"}}
    models.script = pair(DRAFT, Reply(raw=json.dumps(failed).encode()))
    before = gateway.status()
    got = post(gateway.url, ASK)
    gateway.idle()
    assert (got.status, json.loads(got.body)["error"]["message"]) == (400, "no such image")
    assert gateway.status()["refused"] == before["refused"] + 1
    assert gateway.status()["forfeits"] == before["forfeits"]


def test_drafts_without_usable_log_probabilities_have_no_score(gateway: RunningGateway, models: ScriptedServer) -> None:
    """Missing ones and NaN: the expert answers, and it is no round."""

    def nan(request: Request) -> Reply:
        return Reply(raw=json.dumps(DRAFT.body(request)).replace('"logprob": -', '"logprob": NaN, "was": -').encode())

    for draft in (Reply("41", logprobs=False), nan):
        models.script = pair(draft, EXPERT)
        before = gateway.status()["steps"]
        got = post(gateway.url, ASK)
        gateway.idle()
        assert got.headers["x-bpac-answered-by"] == "expert"
        assert gateway.status()["steps"] == before


def test_unusable_responses_are_repeated_and_counted(gateway: RunningGateway, models: ScriptedServer) -> None:
    """HTML, a chat completion in place of a message, and a stream that ends early."""
    chat = json.dumps(EXPERT.body(Request(1, {}))).encode()
    for wrong in (b"<html>", chat):
        before = failures(gateway, "unusable")
        models.script = pair(DRAFT, in_turn_of_model(Reply(raw=wrong), EXPERT))
        assert post(gateway.url, ASK).status == 200
        assert failures(gateway, "unusable") == before + 1


def in_turn_of_model(*replies: Reply) -> Any:
    """Replies one after the other, whatever the number of the request."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_tokens_are_counted_as_the_server_counts_them(models: ScriptedServer) -> None:
    """Also those of the prompt that came from a cache or were written to it, whole and streamed."""
    for stream in (False, True):
        with RunningGateway(config(models.base_url, policy="always")) as gateway:
            post(gateway.url, {**ASK, "stream": stream})
            gateway.idle()
            tokens = gateway.status()["savings"]["usage"]
            assert tokens["expert"] == {
                "prompt_tokens": 7, "cached_tokens": 5, "completion_tokens": 4, "estimated_tokens": 0
            }  # fmt: skip


def test_deployments_have_the_api_of_their_model(models: ScriptedServer) -> None:
    """The next one is tried if one is overloaded, and none is asked what the API cannot express."""
    with ScriptedServer(Reply("Overloaded", status=529)) as busy:
        found = config(models.base_url)
        del found["models"]["large"]["base_url"]
        found["models"]["large"]["deployments"] = [{"base_url": busy.base_url}, {"base_url": models.base_url}]
        with RunningGateway(found) as gateway:
            for stream in (False, True):
                assert b"42" in post(gateway.url, {**ASK, "stream": stream}).body
                gateway.idle()
            asked = len(busy.requests)
            assert post(gateway.url, {**ASK, "seed": 7}).status == 400
        assert {request.path for request in busy.requests} == {"/v1/messages"}
        assert asked == len(busy.requests) == 2


def test_a_judge_may_be_behind_another_api(models: ScriptedServer) -> None:
    """Its marks are read as from a chat."""
    found = config(models.base_url, loss={"name": "judge", "judge": "judge"})
    found["models"]["judge"] = {**found["models"]["large"], "model": "judge"}
    asked: list[str] = []

    def script(request: Request) -> Reply:
        asked.append(request.path)
        return {"draft": DRAFT, "expert": EXPERT}.get(request.body["model"], Reply("[[7]]"))

    models.script = script
    with RunningGateway(found) as gateway:
        post(gateway.url, ASK)
        gateway.idle()
        status = gateway.status()
        assert (status["steps"], status["owed"], status["forfeits"]) == (1, 0, {})
        assert status["savings"]["usage"]["judge"]["prompt_tokens"] == 14
    assert asked.count("/v1/messages") == 3


def test_probes_understand_both_apis(models: ScriptedServer) -> None:
    """The same checks as for chat completions: reachable, key, model, score, thinking."""
    found = config(models.base_url)
    found["gateway"]["probe"] = True
    with RunningGateway(found) as gateway:
        probed: dict[str, Any] = {}

        def all_probed() -> bool:
            status = get_json(f"{gateway.url}/v1/status")["models"]
            probed.update({name: model["health"].get("probe") for name, model in status.items()})
            return all(probed.values())

        wait_for(all_probed)
    texts = json.dumps(probed)
    assert "log-probabilities given" in texts
    assert "thinking on" in texts


def test_a_score_that_the_api_cannot_serve_is_an_error_at_start() -> None:
    """A draft behind the Messages API has no log-probabilities; the message says what to do."""
    found = config("http://127.0.0.1:9/v1")
    found["models"]["small"]["api"] = "messages"
    with pytest.raises(SettingsError, match=r"homework\.score: .*needs log-probabilities.*score = \"auto\""):
        Config.read(found)
    found["routes"]["homework"]["score"] = "verbalized"
    Config.read(found)
    found["models"]["small"]["api"] = "completions"
    with pytest.raises(SettingsError, match=r"models\.small\.api: expected one of chat, messages, responses"):
        Config.read(found)


def test_the_api_is_a_term_of_the_game() -> None:
    """Another API may give other answers; games of chat completions keep the terms that they have had."""

    def terms(**more: Any) -> str:
        found = settings("http://127.0.0.1:9/v1")
        found["models"]["large"] |= more
        route = Config.read(found).routes["homework"]
        return route.terms(route.new_router())

    assert terms() == terms(api="chat", default_max_tokens=5)
    limited = terms(api="messages", default_max_tokens=5)
    assert len({terms(), terms(api="responses"), terms(api="messages"), limited}) == 4


def test_answers_of_any_api_are_limited() -> None:
    """Before they are translated: a short text can take much memory once it is decoded."""
    apis: tuple[ApiName, ...] = ("responses", "messages")
    for api in apis:
        translation = model_api(api).translation
        body = json.dumps(EXPERT.body(Request(1, {}, path=f"/v1/{api}"))).encode()
        assert read_answer(body, 1000, translation).answer.text == "42"
        with pytest.raises(TooLong):
            read_answer(b'{"output": [' + b"[]," * 2000 + body + b"]}", 1000, translation)
