"""LangChain's client, unmodified except for its address."""

from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from bpac.testing import Reply, Request
from tests.gateway.running import Running, RunningGateway, pair

CALL: Any = {"id": "call-1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
DRAFT = Reply("It is 42, I think", probability=0.8)
EXPERT = Reply("It is 42", reasoning="six times seven", probability=0.99)
# No threshold but a fixed one: drafts are kept, or the expert answers.
KEPT, CALLED = {"policy": "never"}, {"policy": "always"}
BOTH = pytest.mark.parametrize(("policy", "text"), [(KEPT, DRAFT.text), (CALLED, EXPERT.text)], ids=["kept", "called"])


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def chat(gateway: RunningGateway, **options: Any) -> ChatOpenAI:
    """The client, unmodified."""
    url = f"{gateway.url}/v1"
    return ChatOpenAI(model="homework", base_url=url, api_key=SecretStr("none"), max_retries=0, timeout=20.0, **options)


@BOTH
def test_a_whole_answer(policy: Any, text: str) -> None:
    """Text, token counts and finish reason are where LangChain looks for them; so are the headers."""
    with Running(pair(DRAFT, EXPERT), **policy) as (gateway, _):
        answer = chat(gateway, include_response_headers=True).invoke("6 * 7?")
        assert isinstance(answer, AIMessage)
        assert answer.content == text
        assert answer.usage_metadata is not None
        assert answer.usage_metadata["output_tokens"] > 0
        assert answer.response_metadata["finish_reason"] == "stop"
        by = answer.response_metadata["headers"]["x-bpac-answered-by"]
        assert by == ("draft" if policy is KEPT else "expert")
        gateway.idle()


@BOTH
@pytest.mark.parametrize("score", ["perplexity", {"name": "perplexity", "first_tokens": 2}])
def test_a_streamed_answer(policy: Any, text: str, score: Any) -> None:
    """It comes in chunks, which add up to the text, the finish reason and, on request, the token counts."""
    with Running(pair(DRAFT, EXPERT), score=score, **policy) as (gateway, _):
        for counts in (False, True):
            chunks = list(chat(gateway, stream_usage=counts).stream("6 * 7?"))
            # A draft that was judged as a whole is there as a whole.
            buffered = policy is KEPT and score == "perplexity"
            assert sum(bool(chunk.content) for chunk in chunks) > (0 if buffered else 1)
            whole = chunks[0]
            for chunk in chunks[1:]:
                whole += chunk
            assert isinstance(whole, AIMessageChunk)
            assert whole.content == text
            assert whole.response_metadata["finish_reason"] == "stop"
            assert (whole.usage_metadata is not None) is counts
        gateway.idle()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("policy", [KEPT, CALLED], ids=["kept", "called"])
def test_tools(policy: Any, stream: bool) -> None:
    """A bound tool reaches both models, its call comes back parsed, and its result can be sent."""

    def script(request: Request) -> Reply:
        if request.body["messages"][-1]["role"] == "tool":
            return Reply(f"It is {request.body['messages'][-1]['content']}")
        return Reply("", tool_calls=(CALL,), finish_reason="tool_calls")

    score = {"name": "perplexity", "otherwise": 0.5}  # calls without log-probabilities
    with Running(script, score=score, **policy) as (gateway, models):
        bound = chat(gateway, streaming=stream).bind_tools([add])
        question = HumanMessage("1 + 2?")
        wants = bound.invoke([question])
        assert isinstance(wants, AIMessage)
        (call,) = wants.tool_calls
        assert (call["name"], call["args"]) == ("add", {"a": 1, "b": 2})
        result = add.invoke(call)
        assert isinstance(result, ToolMessage)
        assert bound.invoke([question, wants, result]).content == "It is 3"
        gateway.idle()
        names = [one["function"]["name"] for request in models.requests for one in request.body["tools"]]
        assert names == ["add"] * len(models.requests)


def test_a_batch_gets_every_answer() -> None:
    """A parallel batch gets every answer in its place, and each is a round of its own."""

    def echo(request: Request) -> Reply:
        return Reply(request.question, delay=0.02)

    questions: list[Any] = [f"say {number}" for number in range(64)]
    with Running(pair(echo, echo)) as (gateway, _):
        answers = chat(gateway).batch(questions, config={"max_concurrency": 32})
        assert [answer.content for answer in answers] == questions
        gateway.idle()
        status = gateway.status()
        assert (status["steps"], status["owed"], status["forfeits"]) == (64, 0, {})


def test_a_structured_answer() -> None:
    """The response format reaches the models, and what they generate is parsed."""
    reply = Reply('{"answer": 42}')
    schema = {"title": "Answer", "type": "object", "properties": {"answer": {"type": "integer"}}}
    with Running(pair(reply, reply)) as (gateway, models):
        asked = chat(gateway).with_structured_output(schema, method="json_schema")
        assert asked.invoke("6 * 7?") == {"answer": 42}
        gateway.idle()
        assert all(request.body["response_format"]["type"] == "json_schema" for request in models.requests)


def test_errors_are_those_of_the_protocol() -> None:
    """A refusal, an expert that is down and an unknown route raise the errors that LangChain's users catch."""
    with Running(pair(DRAFT, Reply("too long by far", status=400)), **CALLED) as (gateway, models):
        with pytest.raises(openai.BadRequestError, match="too long by far"):
            chat(gateway).invoke("6 * 7?")
        models.script = pair(DRAFT, Reply("busy", status=503))
        with pytest.raises(openai.InternalServerError, match="no usable answer"):
            list(chat(gateway).stream("6 * 7?"))
        with pytest.raises(openai.NotFoundError, match="there is no route 'gpt-4'"):
            chat(gateway).invoke("6 * 7?", model="gpt-4")
        models.script = pair(DRAFT, EXPERT)
        assert chat(gateway).invoke("6 * 7?").content == EXPERT.text
        gateway.idle()
