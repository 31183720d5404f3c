"""Questions sent with the official OpenAI client. The only module that imports openai (extra ``demo``)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.collecting.answers_file import Role
from bpac.collecting.workers import run_workers
from bpac.errors import MissingExtra, Unavailable

try:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError
    from openai.types.chat import ChatCompletion
except ImportError as error:
    raise MissingExtra("openai", "demo") from error

CONCURRENCY = 16
# Seconds; longer than the gateway waits for both models in turn, so that its error and not a timeout is reported.
TIMEOUT = 75.0
# For other modules, which do not import openai.
Client = AsyncOpenAI
NOTHING_MORE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """An answer that the gateway served.

    Parameters
    ----------
    question: the question.
    step: number of the round.
    by: which model answered.
    answer: the answer.
    model: name of the model that answered, where the route is a cascade.
    """

    question: Question
    step: int
    by: Role
    answer: Answer
    model: str = ""


@asynccontextmanager
async def client_of(base_url: str) -> AsyncIterator[AsyncOpenAI]:
    """A client for a server on this machine, independent of proxies and keys in the environment."""
    web = DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(base_url=base_url, api_key="none needed", timeout=TIMEOUT, http_client=web) as client:
        yield client


async def ask_route(
    client: AsyncOpenAI, route: str, question: Question, body: Mapping[str, Any] = NOTHING_MORE
) -> ServedAnswer:
    """The answer of a gateway's route.

    Parameters
    ----------
    client: client of the gateway.
    route: name of the route, sent as ``model``.
    question: the question.
    body: additional fields of the request (default: none).
    """
    try:
        raw = await client.chat.completions.with_raw_response.create(
            model=route, messages=[{"role": "user", "content": question.prompt}], extra_body=dict(body)
        )
    except OpenAIError as error:
        raise Unavailable(_words(error)) from error
    step = int(raw.headers["x-bpac-decision"].split("-")[2])
    by: Role = "draft" if raw.headers["x-bpac-answered-by"] == "draft" else "expert"
    return ServedAnswer(question, step, by, _answer(raw.parse()), raw.headers.get("x-bpac-model", ""))


async def ask_model(client: AsyncOpenAI, model: str, body: Mapping[str, Any], question: Question) -> Answer:
    """The answer of a model without the gateway."""
    try:
        completion = await client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": question.prompt}], extra_body=dict(body)
        )
    except OpenAIError as error:
        raise Unavailable(_words(error)) from error
    return _answer(completion)


async def ask_all(
    client: AsyncOpenAI,
    route: str,
    questions: Iterable[Question],
    take: Callable[[ServedAnswer], None],
    body: Mapping[str, Any] = NOTHING_MORE,
) -> None:
    """Send all questions to a route, several at a time.

    Parameters
    ----------
    client: client of the gateway.
    route: name of the route, sent as ``model``.
    questions: the questions, in order.
    take: called with each answer when it arrives.
    body: additional fields of every request (default: none).
    """
    waiting = iter(questions)

    async def work() -> None:
        for question in waiting:
            take(await ask_route(client, route, question, body))

    await run_workers(CONCURRENCY, work)


async def ask_slowly(
    client: AsyncOpenAI, route: str, questions: Iterable[Question], take: Callable[[ServedAnswer], None], pause: float
) -> None:
    """Send questions one after the other, with a pause of that many seconds after each."""
    for question in questions:
        take(await ask_route(client, route, question))
        await asyncio.sleep(pause)


def _answer(completion: ChatCompletion) -> Answer:
    return Answer.from_openai(completion.model_dump())


def _words(error: OpenAIError) -> str:
    return f"{error} {error.__cause__ or ''}".strip()
