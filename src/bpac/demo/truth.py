"""What no gateway can see: the answers it spared itself, asked for afterwards, and so what was really lost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.collecting.answers_file import ROLES, Role
from bpac.collecting.workers import run_workers
from bpac.demo.asking import AT_ONCE, ServedAnswer, ask_model, client_of
from bpac.demo.pair import ModelPair
from bpac.gateway.chat.grading import Grader, graded, grader_of
from bpac.gateway.config.routes import RouteSettings
from bpac.grading.equality import same_final

Answers = dict[tuple[Question, Role], Answer]


@dataclass(frozen=True, slots=True)
class Truth:
    """What was really served.

    Parameters
    ----------
    questions: how many were asked of the gateway.
    losses: by step, what was lost: the loss of the draft where it was served, else 0.
    served_loss, draft_loss: average loss of what was served, and of always keeping the draft.
    expert_tokens: what the expert alone would have generated.
    tokens_saved: what was saved of that, drafts paid for.
    served_right, draft_right, expert_right: shares of right answers: as served, and always the draft's or the expert's.
    """

    questions: int
    losses: Mapping[int, float]
    served_loss: float
    draft_loss: float
    expert_tokens: int
    tokens_saved: int
    served_right: float
    draft_right: float
    expert_right: float


async def both_answers(pair: ModelPair, served: Sequence[ServedAnswer], show: Callable[[int, int], None]) -> Answers:
    """The answers of both models to every question: those that were served, and the others asked for now.

    Both models always say the same to the same question, so it does not matter when they are asked.

    Parameters
    ----------
    pair: whom to ask.
    served: what callers got.
    show: is told, now and then, how many answers there are now, and of how many.
    """
    answers: Answers = {(one.question, one.by): one.answer for one in served}
    asked = dict.fromkeys(one.question for one in served)
    missing = [(question, role) for question in asked for role in ROLES if (question, role) not in answers]
    async with AsyncExitStack() as stack:
        clients = {role: await stack.enter_async_context(client_of(pair.models[role].base_url)) for role in ROLES}
        found = len(answers)
        waiting: Iterator[tuple[Question, Role]] = iter(missing)

        async def work() -> None:
            for question, role in waiting:
                model = pair.models[role]
                answers[question, role] = await ask_model(clients[role], model.name, model.body, question)
                show(len(answers) - found, len(missing))

        await run_workers(AT_ONCE, work)
    return answers


async def truth_of(served: Sequence[ServedAnswer], answers: Answers, route: RouteSettings) -> Truth:
    """What was really lost, saved and right.

    Parameters
    ----------
    served: what callers got; at least one.
    answers: both models' to every question.
    route: grades drafts as it did while it served them.
    """
    grader = grader_of(route)
    assert grader is not None  # the demo's losses do not come from outside
    loss = {question: await _loss(grader, question, answers) for question in {one.question for one in served}}
    losses = {one.step: loss[one.question] if one.by == "draft" else 0.0 for one in served}
    count = len(served)

    def right(role: Role | None) -> float:
        given = ((one.question, answers[one.question, role or one.by]) for one in served)
        return sum(same_final(answer.text, question.reference or "") is True for question, answer in given) / count

    def tokens(role: Role) -> int:
        return sum(answers[one.question, role].completion_tokens for one in served)

    expert = tokens("expert")
    called = sum(one.answer.completion_tokens for one in served if one.by == "expert")
    return Truth(
        questions=count,
        losses=losses,
        served_loss=sum(losses.values()) / count,
        draft_loss=sum(loss[one.question] for one in served) / count,
        expert_tokens=expert,
        tokens_saved=expert - called - tokens("draft"),
        served_right=right(None),
        draft_right=right("draft"),
        expert_right=right("expert"),
    )


async def _loss(grader: Grader, question: Question, answers: Answers) -> float:
    grade = await graded(grader, question.prompt, answers[question, "draft"], answers[question, "expert"])
    return 1.0 if grade.loss is None else grade.loss
