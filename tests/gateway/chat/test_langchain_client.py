"""LangChain's client with many requests at once and with errors; tests/clients checks all that it can do."""

from typing import Any

import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from bpac.testing import Reply, Request
from tests.gateway.running import Running, RunningGateway, pair

DRAFT = Reply("It is 42, I think", probability=0.8)
EXPERT = Reply("It is 42", reasoning="six times seven", probability=0.99)


def chat(gateway: RunningGateway, **options: Any) -> ChatOpenAI:
    """The client, unmodified."""
    url = f"{gateway.url}/v1"
    return ChatOpenAI(model="homework", base_url=url, api_key=SecretStr("none"), max_retries=0, timeout=60.0, **options)


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


def test_errors_are_those_of_the_protocol() -> None:
    """A refusal, an expert that is down and an unknown route raise the errors that LangChain's users catch."""
    with Running(pair(DRAFT, Reply("too long by far", status=400)), policy="always") as (gateway, models):
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
