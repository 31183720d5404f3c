"""Graders: the loss of a draft, from the draft and the expert's answer."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from bpac.answer import Answer, excerpt
from bpac.errors import AnswerError, ModelError
from bpac.gateway.chat.upstreams.model import Model, ModelCall
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.telemetry.prose_watch import ProseWatch
from bpac.grading.equality import same_final, same_text
from bpac.grading.judge import parse_mark
from bpac.grading.mathematics.equivalence import check_algebra
from bpac.grading.mathematics.exact_equivalence import same_result
from bpac.grading.mathematics.worker_processes import WorkerProcesses
from bpac.grading.text.answer_text import LONGEST_ANSWER
from bpac.losses import AnswerLoss, Equal, Loss, ToolCallLoss, mark_loss
from bpac.models.judging import Judge
from bpac.wire.completions import Completion
from bpac.wire.usage import NOTHING, Meter, Usage

log = logging.getLogger("bpac.gateway")

# Characters; longer texts are compared in a thread, so that they do not block other requests.
SHORT = 4000
# Formulas that may be compared at the same time, each in a process of its own.
FORMULAS = 2


class GradingOutcome(NamedTuple):
    """The result of grading a draft.

    Parameters
    ----------
    loss: the loss of the draft; none if it cannot be found.
    usage: tokens that a judge was sent and generated to find it (default: none).
    """

    loss: float | None
    usage: Usage = NOTHING


class Grader(Protocol):
    """Compares answers."""

    async def __call__(self, question: str, draft: Answer, expert: Answer) -> GradingOutcome:
        """Grade a draft."""

    async def close(self) -> None:
        """Close connections and processes."""


def grader_of(route: RouteSettings) -> Grader | None:
    """The grader of a route without a judge; none if losses are reported from outside.

    Parameters
    ----------
    route: the settings of the route.
    """
    if route.judge is not None:
        raise TypeError("a judge is a model that has to be opened: use judged_by")
    name = route.loss["name"]
    if name == "external":
        return None
    if name == "embedding":
        # Imported here: it needs packages that the other losses do not.
        from bpac.models.embedding import SentenceModel  # noqa: PLC0415

        return _Compared(_Embedded(SentenceModel.load().distance), always_in_thread=True)
    kind, ordered = route.loss.get("equal", "final"), route.loss.get("ordered", False)
    if kind != "mathematics":
        loss = ToolCallLoss(ordered, AnswerLoss(_EQUAL[kind]))
        return _Compared(ProseWatch(loss, route.name, name), always_in_thread=False)
    check_algebra()
    processes = WorkerProcesses("bpac.grading.mathematics.algebra", FORMULAS)
    loss = ToolCallLoss(ordered, AnswerLoss(partial(same_result, processes=processes)))
    return _Calculated(ProseWatch(loss, route.name, name), processes)


def judged_by(model: Model, route: RouteSettings) -> Grader:
    """The grader of a route with a judge.

    Parameters
    ----------
    model: the judge.
    route: the settings of the route.
    """
    return _Judged(model, {key: route.loss[key] for key in ("votes", "attempts", "timeout") if key in route.loss})


async def graded(grader: Grader, question: str, draft: Answer, expert: Answer) -> GradingOutcome:
    """Grade a draft; without a loss if the answers cannot be compared or if the grader fails."""
    if not expert.text and not expert.tool_calls:
        return GradingOutcome(None)  # nothing to compare the draft with: it was cut off while thinking, for example
    if not draft.finished or not expert.finished:
        return GradingOutcome(None)  # an answer that was cut off could have ended in any way
    if max(_size(draft), _size(expert)) > LONGEST_ANSWER:
        return GradingOutcome(None)
    try:
        return await grader(question, draft, expert)
    except Exception as error:  # a grader may raise anything; an unknown loss counts as 1
        log.warning("grader failed", extra={"error": type(error).__name__})
        return GradingOutcome(None)


def _size(answer: Answer) -> int:
    """The size of what is compared, in characters."""
    return len(answer.text) + (len(excerpt(answer.tool_calls, LONGEST_ANSWER + 1)) if answer.tool_calls else 0)


_EQUAL: Mapping[str, Equal] = {"final": same_final, "text": same_text}


@dataclass(frozen=True, slots=True)
class _Embedded:
    distance: Callable[[str, str], float]

    def __call__(self, draft: Answer, expert: Answer) -> float:
        return self.distance(draft.text, expert.text)


@dataclass(frozen=True, slots=True)
class _Compared:
    loss: Loss
    always_in_thread: bool

    async def __call__(self, question: str, draft: Answer, expert: Answer) -> GradingOutcome:
        if self.always_in_thread or _size(draft) + _size(expert) > SHORT:
            return GradingOutcome(await asyncio.to_thread(self.loss, draft, expert))
        return GradingOutcome(self.loss(draft, expert))

    async def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _Calculated:
    """Compares formulas in processes; each has a thread of its own that waits for it, so shared threads stay free."""

    loss: Loss
    processes: WorkerProcesses
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(FORMULAS, "bpac-formulas"))

    async def __call__(self, question: str, draft: Answer, expert: Answer) -> GradingOutcome:
        return GradingOutcome(await asyncio.get_running_loop().run_in_executor(self.threads, self.loss, draft, expert))

    async def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self.processes.close)


@dataclass(frozen=True, slots=True)
class _Judged:
    model: Model
    options: Mapping[str, Any]

    async def __call__(self, question: str, draft: Answer, expert: Answer) -> GradingOutcome:
        asked = _AskedJudge(self.model.for_request())
        judge, loss = Judge(asked, **self.options), None
        try:
            loss = mark_loss(*await judge.marks(question, draft.text, expert.text))
        except AnswerError:
            pass  # the model has recorded it, as all failures of its attempts
        except ModelError as error:
            if isinstance(error.__cause__, TimeoutError):
                # The judgement took too long. Its requests were cancelled, so the model knows of no failure.
                asked.model.given_up(judge.timeout)
        return GradingOutcome(loss, asked.meter.take())

    async def close(self) -> None:
        pass


@dataclass(slots=True)
class _AskedJudge:
    """The judge for one judgement, whose tokens are counted."""

    model: ModelCall
    meter: Meter = field(default_factory=Meter)

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> Answer:
        return (await self.model.whole({"messages": list(messages)}, self.meter, check=_has_mark)).answer


def _has_mark(completion: Completion) -> None:
    parse_mark(completion.answer.text)
