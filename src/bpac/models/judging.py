"""LLM as a judge: a model marks both answers, and the loss of the draft follows from the marks."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bpac.answer import Answer
from bpac.arguments import keep, positive, whole
from bpac.errors import AnswerError, ModelError, NoVerdict, Unavailable
from bpac.grading.judge import judge_messages, parse_mark, random_code
from bpac.losses import mark_loss


class Completes(Protocol):
    """A model that answers messages, such as ``ModelClient``."""

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> Answer:
        """The model's answer to the messages."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that marks answers from 1 to 10.

    Parameters
    ----------
    client: the model.
    votes: how many marks are averaged for each answer (default: 1). More than one help only if the model is not
        deterministic.
    attempts: how many replies are requested for each mark until one has a usable mark (default: 3).
    timeout: seconds that a judgement may take in all, repetitions included (default: 120).
    new_code: draws the secret code of a prompt (default: 32 random letters). Only a measurement that must
        give the same result each time needs another one.
    """

    client: Completes
    votes: int = 1
    attempts: int = 3
    timeout: float = 120.0
    new_code: Callable[[], str] = random_code

    def __post_init__(self) -> None:
        whole(self.votes, "votes", 1)
        whole(self.attempts, "attempts", 1)
        keep(self, timeout=positive(self.timeout, "timeout"))

    async def loss(self, question: str, draft: str, expert: str) -> float | None:
        """The loss of the draft against the expert's answer; none if the judge failed.

        A router counts an unknown loss as 1. The reason of a failure is raised by ``marks``.
        """
        try:
            return mark_loss(*await self.marks(question, draft, expert))
        except (ModelError, AnswerError):
            return None

    async def marks(self, question: str, draft: str, expert: str) -> tuple[float, float]:
        """The marks of both answers; ``NoVerdict``, ``Refused`` or ``Unavailable`` if any vote is missing."""
        # The mean of an incomplete set of votes would favour answers that are hard to judge.
        try:
            async with asyncio.timeout(self.timeout), asyncio.TaskGroup() as votes:
                # Both answers are marked with the same codes: the prompts differ in nothing but the answer, and a
                # server that caches the beginning of prompts processes the question once.
                codes = [self.new_code() for _ in range(self.votes)]
                drafts = [votes.create_task(self._mark(question, draft, code)) for code in codes]
                experts = [votes.create_task(self._mark(question, expert, code)) for code in codes]
        except TimeoutError as error:
            raise Unavailable(f"{self.client} did not judge within {self.timeout:g} s") from error
        except ExceptionGroup as group:
            # All others were cancelled. Its cause says what kind of failure it is.
            first = group.exceptions[0]
            raise first from first.__cause__
        return self._mean(drafts), self._mean(experts)

    async def _mark(self, question: str, answer: str, code: str) -> float:
        for _ in range(self.attempts - 1):
            try:
                return await self._requested_mark(question, answer, code)
            except NoVerdict:
                # A deterministic model would give the same reply to the same prompt.
                code = self.new_code()
        return await self._requested_mark(question, answer, code)

    async def _requested_mark(self, question: str, answer: str, code: str) -> float:
        return parse_mark((await self.client.complete(judge_messages(question, answer, code))).text)

    def _mean(self, votes: Sequence[asyncio.Task[float]]) -> float:
        return sum(vote.result() for vote in votes) / self.votes
