"""Graders: from a draft and the expert's answer to a loss, or to the news that it cannot be known."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from bpac.answer import Answer
from bpac.gateway.model_settings import ModelSettings
from bpac.gateway.route_settings import RouteSettings
from bpac.grading.answers import Reply, first_sentence, plain
from bpac.grading.mathematics import grade_mathematics
from bpac.losses import AnswerLoss, Loss, ToolCallLoss
from bpac.models.client import ModelClient
from bpac.models.judging import Judge
from bpac.scores import same_text

log = logging.getLogger("bpac.gateway")

# Longer texts are compared in a thread, so that other requests go on meanwhile.
SHORT = 4000


class Grade(NamedTuple):
    """What a grader found.

    Parameters
    ----------
    loss: the loss of the draft; none if it is not known.
    tokens: how many tokens were generated to find it.
    """

    loss: float | None
    tokens: int = 0


class Grader(Protocol):
    """Compares answers."""

    async def __call__(self, question: str, draft: Answer, expert: Answer) -> Grade:
        """The grade of a draft."""

    async def close(self) -> None:
        """Let go of what it holds."""


def grader_of(route: RouteSettings) -> Grader | None:
    """The grader of a route, given question, draft and expert's answer; none if losses come from outside."""
    name = route.loss["name"]
    if name == "external":
        return None
    if name == "judge" and route.judge is not None:
        options = {key: route.loss[key] for key in ("votes", "attempts", "timeout") if key in route.loss}
        client = _client(route.judge)
        return _Judged(client, Judge(client, **options))
    if name == "embedding":
        # Only here: it needs packages that the other losses do not.
        from bpac.models.embedding import SentenceModel  # noqa: PLC0415

        return _Compared(_Embedded(SentenceModel.load().distance), always_in_thread=True)
    equal = _EQUAL[route.loss.get("equal", "final")]
    compared = ToolCallLoss(ordered=route.loss.get("ordered", False), text=AnswerLoss(equal))
    return _Compared(compared, always_in_thread=equal is same_result)


async def graded(grader: Grader, question: str, draft: Answer, expert: Answer) -> Grade:
    """The grade; one without a loss if the grader failed in whatever way."""
    if not expert.text and not expert.tool_calls:
        return Grade(None)  # cut off while it thought, say: nothing to compare the draft with
    try:
        return await grader(question, draft, expert)
    except Exception as error:  # a grader may be anything; what it cannot tell counts as 1
        log.warning("grader failed", extra={"error": type(error).__name__})
        return Grade(None)


def same_final(draft: str, expert: str) -> bool:
    r"""Whether two texts end in the same answer: what they mark as their answer, or else all their words.

    >>> same_final("So it is \\boxed{42}.", "The answer is 42."), same_final("41", "42")
    (True, False)
    """
    if draft == expert:
        return True
    ours, theirs = (Reply.read(text).marked() for text in (draft, expert))
    if not ours and not theirs:
        return same_text(draft, expert)
    one, other = (plain(first_sentence(said[0] if said else text)) for said, text in ((ours, draft), (theirs, expert)))
    return one == other


def same_result(draft: str, expert: str) -> bool:
    """Whether a text comes to the same mathematical result as the expert's."""
    marked = Reply.read(expert).marked()
    reference = first_sentence(marked[0]) if marked else expert.strip()
    return bool(grade_mathematics(reference, draft))


_EQUAL: Mapping[str, Callable[[str, str], bool]] = {
    "final": same_final,
    "text": same_text,
    "mathematics": same_result,
}


@dataclass(frozen=True, slots=True)
class _Embedded:
    distance: Callable[[str, str], float]

    def __call__(self, draft: Answer, expert: Answer) -> float:
        return self.distance(draft.text, expert.text)


@dataclass(frozen=True, slots=True)
class _Compared:
    loss: Loss
    always_in_thread: bool

    async def __call__(self, question: str, draft: Answer, expert: Answer) -> Grade:
        if self.always_in_thread or len(draft.text) + len(expert.text) > SHORT:
            return Grade(await asyncio.to_thread(self.loss, draft, expert))
        return Grade(self.loss(draft, expert))

    async def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Judged:
    client: ModelClient
    judge: Judge

    async def __call__(self, question: str, draft: Answer, expert: Answer) -> Grade:
        counting = _Counting(self.client)
        loss = await replace(self.judge, client=counting).loss(question, draft.text, expert.text)
        return Grade(loss, counting.tokens)

    async def close(self) -> None:
        await self.client.close()


def _client(model: ModelSettings) -> ModelClient:
    return ModelClient(
        model.base_url,
        model.model,
        api_key=model.api_key,
        timeout=model.timeout,
        retries=model.retries,
        backoff=model.backoff,
        body=model.body,
        headers=model.headers,
    )


@dataclass(slots=True)
class _Counting:
    """A model that counts what it generates."""

    client: ModelClient
    tokens: int = 0

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> Answer:
        answer = await self.client.complete(messages)
        self.tokens += answer.completion_tokens
        return answer
