"""The ground truth of a demo: both models answer every question afterwards, which gives the actual loss."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.collecting.answers_file import ROLES, Role
from bpac.collecting.workers import run_workers
from bpac.demo.client import CONCURRENCY, ServedAnswer, ask_model, client_of
from bpac.demo.pair import ModelPair
from bpac.gateway.chat.grading import Grader, graded, grader_of
from bpac.gateway.config.routes import RouteSettings
from bpac.grading.equality import same_final

Answers = dict[tuple[Question, Role], Answer]


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Actual losses, savings and correct answers.

    Parameters
    ----------
    questions: number of questions that the gateway answered.
    losses: loss of the served answer by step: that of the draft where it was served, else 0.
    served_loss, draft_loss: average loss of the served answers, and of always serving the draft.
    expert_tokens: tokens that the expert alone would have generated.
    tokens_saved: expert_tokens minus the tokens that drafts and expert calls generated.
    served_right, draft_right, expert_right: shares of correct answers: as served, and by always serving one model.
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
    """The answers of both models to every question: those that were served, and the missing ones, requested now.

    Both models always give the same answer to the same question, so that it does not matter when they are asked.

    Parameters
    ----------
    pair: the models.
    served: the answers that the gateway served.
    show: called with the number of answers requested so far, and with their total number.
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

        await run_workers(CONCURRENCY, work)
    return answers


async def ground_truth(served: Sequence[ServedAnswer], answers: Answers, route: RouteSettings) -> GroundTruth:
    """Actual losses, savings and correct answers.

    Parameters
    ----------
    served: the answers that the gateway served; at least one.
    answers: the answers of both models to every question.
    route: settings of the route, whose grader is used again.
    """
    grader = grader_of(route)
    assert grader is not None  # the demo's route grades its drafts itself
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
    return GroundTruth(
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
