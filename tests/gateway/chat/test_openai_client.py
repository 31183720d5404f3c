"""OpenAI's client, unmodified except for its address."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from bpac.testing import Reply, Request
from tests.gateway.configured import get_json
from tests.gateway.running import MESSAGES, Running, pair

ADD: Any = {"id": "call-1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
DRAFT = Reply("It is 42, I think", probability=0.8)
EXPERT = Reply("It is 42", reasoning="six times seven", probability=0.99)
# No threshold but a fixed one: drafts are kept, or the expert answers.
KEPT, CALLED = {"policy": "never"}, {"policy": "always"}


@pytest.mark.parametrize(("policy", "by", "text"), [(KEPT, "draft", DRAFT.text), (CALLED, "expert", EXPERT.text)])
def test_a_whole_answer(policy: Any, by: str, text: str) -> None:
    """It is the draft or the expert's answer, and the headers say what was decided."""
    with Running(pair(DRAFT, EXPERT), **policy) as (gateway, _):
        raw = gateway.client().chat.completions.with_raw_response.create(model="homework", messages=MESSAGES)
        answer = raw.parse()
        assert answer.choices[0].message.content == text
        assert answer.choices[0].logprobs is None
        assert answer.usage is not None
        assert raw.headers["x-bpac-answered-by"] == by
        assert raw.headers["x-bpac-decision"].startswith("dec-1-1-")
        assert float(raw.headers["x-bpac-uncertainty"]) == pytest.approx(0.2)
        assert float(raw.headers["x-bpac-threshold"]) == (1.0 if by == "draft" else 0.0)
        assert float(raw.headers["x-bpac-propensity"]) == (0.0 if by == "draft" else 1.0)


@pytest.mark.parametrize(("policy", "by", "text"), [(KEPT, "draft", DRAFT.text), (CALLED, "expert", EXPERT.text)])
@pytest.mark.parametrize("score", ["perplexity", {"name": "perplexity", "first_tokens": 2}])
def test_a_streamed_answer(policy: Any, by: str, text: str, score: Any) -> None:
    """Text, reasoning, finish reason and, on request, token counts come in chunks, with the same headers."""
    with Running(pair(DRAFT, EXPERT), score=score, **policy) as (gateway, _):
        for counts in (False, True):
            with gateway.client().chat.completions.with_streaming_response.create(
                model="homework", messages=MESSAGES, stream=True, stream_options={"include_usage": counts}
            ) as raw:
                assert raw.headers["x-bpac-answered-by"] == by
                chunks = list(raw.parse())
            said = [chunk.choices[0] for chunk in chunks if chunk.choices]
            assert "".join(choice.delta.content or "" for choice in said) == text
            assert all(choice.logprobs is None for choice in said)
            thoughts = "".join(getattr(choice.delta, "reasoning_content", None) or "" for choice in said)
            assert thoughts == (EXPERT.reasoning if by == "expert" else "")
            assert [choice.finish_reason for choice in said if choice.finish_reason] == ["stop"]
            assert [chunk.usage is not None for chunk in chunks if not chunk.choices] == ([True] if counts else [])


@pytest.mark.parametrize("policy", [KEPT, CALLED])
@pytest.mark.parametrize("stream", [False, True])
def test_tools(policy: Any, stream: bool) -> None:
    """Tool calls arrive whole, and the tools reach the models as they were sent."""
    reply = Reply("", tool_calls=(ADD,), finish_reason="tool_calls")
    tools: Any = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    # Log-probabilities of calls are seldom given: such drafts have no score, and the expert answers.
    with Running(pair(reply, reply), score={"name": "perplexity", "otherwise": 0.5}, **policy) as (gateway, models):
        ask = gateway.client().chat.completions
        if stream:
            chunks = list(ask.create(model="homework", messages=MESSAGES, tools=tools, stream=True))
            calls = [call for c in chunks for call in (c.choices[0].delta.tool_calls or ())]
            name = "".join((call.function.name or "") for call in calls if call.function)
            arguments = "".join((call.function.arguments or "") for call in calls if call.function)
        else:
            answer = ask.create(model="homework", messages=MESSAGES, tools=tools)
            function: Any = (answer.choices[0].message.tool_calls or [])[0]
            name, arguments = function.function.name, function.function.arguments
        assert (name, json.loads(arguments)) == ("add", {"a": 1, "b": 2})
        gateway.idle()
        assert all(request.body["tools"] == tools for request in models.requests)


def test_unknown_fields_arrive_unchanged() -> None:
    """Both models get unknown fields; log-probabilities are requested of the draft only, and keys are never sent."""
    extra = {"chat_template_kwargs": {"enable_thinking": True}, "repetition_penalty": 1.1, "seed": 7}
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]
    with Running(pair(DRAFT, EXPERT), **CALLED) as (gateway, models):
        gateway.client("secret").chat.completions.create(model="homework", messages=picture, extra_body=extra)  # type: ignore[arg-type]
        gateway.idle()
        for request in models.requests:
            asked = dict(request.body)
            assert asked.pop("logprobs", None) is (True if asked["model"] == "draft" else None)
            assert asked == {"model": asked["model"], "messages": picture, **extra}
            assert "secret" not in str(request.headers)


def test_callers_see_the_log_probabilities_they_asked_for() -> None:
    """As many as they asked for, although the score needs more."""
    tops = tuple(Reply("a b").answer_tokens())
    many = tuple(type(t)(t.text, t.logprob, (-0.1, -2.0, -3.0), (t.text, "x", "y")) for t in tops)
    with Running(pair(Reply(tokens=many), EXPERT), score={"name": "entropy", "top": 3}, **KEPT) as (gateway, models):
        ask = gateway.client().chat.completions
        answer = ask.create(model="homework", messages=MESSAGES, logprobs=True, top_logprobs=1)
        assert answer.choices[0].logprobs is not None
        assert [len(t.top_logprobs) for t in answer.choices[0].logprobs.content or ()] == [1, 1]
        assert models.requests[0].body["top_logprobs"] == 3
        assert ask.create(model="homework", messages=MESSAGES).choices[0].logprobs is None


def test_several_answers_at_once_come_from_the_expert() -> None:
    """``n > 1`` cannot be scored: it is not a round, and a header says so."""
    with Running(pair(DRAFT, EXPERT), **KEPT) as (gateway, models):
        raw = gateway.client().chat.completions.with_raw_response.create(model="homework", messages=MESSAGES, n=2)
        assert raw.headers["x-bpac-unscored"] == "n"
        assert raw.headers["x-bpac-answered-by"] == "expert"
        assert raw.headers["x-bpac-uncertainty"] == "1.0"
        gateway.idle()
        assert [request.body["model"] for request in models.requests] == ["expert"]
        assert gateway.status()["owed"] == 0


def test_parallel_requests_are_rounds_of_their_own() -> None:
    """Sixty-four parallel requests each get their own answer, and each is a round."""

    def echo(request: Request) -> Reply:
        return Reply(request.question, delay=0.02)

    with Running(pair(echo, echo)) as (gateway, _):
        client = gateway.client()

        def ask(number: int) -> str | None:
            messages: Any = [{"role": "user", "content": f"say {number}"}]
            return client.chat.completions.create(model="homework", messages=messages).choices[0].message.content

        with ThreadPoolExecutor(64) as pool:
            assert list(pool.map(ask, range(128))) == [f"say {number}" for number in range(128)]
        gateway.idle()
        status = gateway.status()
        assert (status["steps"], status["owed"], status["forfeits"]) == (128, 0, {})


@pytest.mark.parametrize("stream", [False, True])
def test_refusals_of_a_model_server_are_passed_on(stream: bool) -> None:
    """A 4xx of a model server comes through with its status, body and ``retry-after``."""
    refusals = {
        400: openai.BadRequestError,
        404: openai.NotFoundError,
        422: openai.UnprocessableEntityError,
        429: openai.RateLimitError,
    }
    for status, kind in refusals.items():
        refusal = Reply("too long by far", status=status, headers={"Retry-After": "7"})
        with Running(pair(DRAFT, refusal), **CALLED) as (gateway, _):
            with pytest.raises(kind) as caught:
                gateway.client().chat.completions.create(model="homework", messages=MESSAGES, stream=stream)
            assert caught.value.response.headers["retry-after"] == "7"
            assert caught.value.body == {"message": "too long by far", "type": "scripted", "code": status}
            gateway.idle()
            counted = gateway.status()
            # A rate is the operator's, and says nothing about the request.
            expected = (0, {"expert failed": 1}) if status == 429 else (1, {})
            assert (counted["refused"], counted["forfeits"]) == expected


def test_the_models_are_the_routes() -> None:
    """The list of models has the routes, and an unknown model is an error that says so."""
    with Running(pair(DRAFT, EXPERT)) as (gateway, _):
        assert [model.id for model in gateway.client().models.list()] == ["homework"]
        with pytest.raises(openai.NotFoundError, match="there is no route 'gpt-4'"):
            gateway.client().chat.completions.create(model="gpt-4", messages=MESSAGES)


def test_a_configured_key_is_required() -> None:
    """With keys configured, requests need one of them; the health endpoint does not."""
    with Running(pair(DRAFT, EXPERT), gateway={"api_keys": ["one", "two"]}) as (gateway, _):
        for key in ("one", "two"):
            gateway.client(key).chat.completions.create(model="homework", messages=MESSAGES)
            assert len(list(gateway.client(key).models.list())) == 1
        for key in ("three", "on", "onetwo", "-"):
            with pytest.raises(openai.AuthenticationError):
                gateway.client(key).chat.completions.create(model="homework", messages=MESSAGES)
            with pytest.raises(openai.AuthenticationError):
                gateway.client(key).models.list()
        assert get_json(f"{gateway.url}/healthz")
