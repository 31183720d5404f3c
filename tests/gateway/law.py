"""Questions with known losses, a pair of models that answers them, and many clients that ask them at once."""

import asyncio
import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import aiohttp

from bpac.answer import Token
from bpac.testing import Reply, Request


@dataclass(frozen=True, slots=True)
class Question:
    """A question by its number: how uncertain its draft is, and whether keeping the draft is a loss."""

    number: int

    @property
    def uncertainty(self) -> float:
        """Uniform in [0, 1)."""
        return random.Random(f"u{self.number}").random()

    @property
    def loss(self) -> float:
        """1 with a probability that rises with the uncertainty."""
        return float(random.Random(f"l{self.number}").random() < 0.5 * self.uncertainty**2)

    @property
    def body(self) -> dict[str, Any]:
        """The request that asks it."""
        return {"model": "homework", "messages": [{"role": "user", "content": str(self.number)}]}


@dataclass(frozen=True, slots=True)
class KnownPair:
    """Answers of both models.

    Parameters
    ----------
    delay, delay_of_loss: of the expert, in seconds: hard questions, which lose more often, take longest.
    """

    delay: float = 0.0
    delay_of_loss: float = 0.0

    def __call__(self, request: Request) -> Reply:
        """The reply of the model that is asked."""
        question = Question(int(request.question))
        if request.body["model"] == "draft":
            text = "wrong" if question.loss else "right"
            # Far from 0 and 1, so that the number survives its logarithm nearly to the last bit.
            return Reply(tokens=(Token(text, math.log(1.0 - question.uncertainty)),))
        return Reply("right", delay=self.delay_of_loss if question.loss else self.delay)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client saw of an answer."""

    question: Question
    headers: dict[str, str]
    text: str

    @property
    def kept(self) -> bool:
        """Whether it was the draft."""
        return self.headers["x-bpac-answered-by"] == "draft"


async def crowd(url: str, questions: Iterable[Question], at_once: int, seen: list[Seen]) -> int:
    """Ask all questions, a number of them at once, and collect the answers; returns how many got no answer."""
    waiting = iter(questions)
    failed = 0

    async def ask(session: aiohttp.ClientSession) -> None:
        nonlocal failed
        for question in waiting:
            try:
                async with session.post(f"{url}/v1/chat/completions", json=question.body) as response:
                    body = await response.json()
                    headers = {name.lower(): value for name, value in response.headers.items()}
                if response.status == 200:
                    seen.append(Seen(question, headers, body["choices"][0]["message"]["content"]))
                else:
                    failed += 1
            except (aiohttp.ClientError, OSError):
                failed += 1
                await asyncio.sleep(0.02)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(ask(session) for _ in range(at_once)))
    return failed
