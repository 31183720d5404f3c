"""The ground truth of a demo: both models answer every question afterwards, which gives the actual loss."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.collecting.answers_file import ROLES, Role
from bpac.collecting.workers import run_workers
from bpac.demo.client import CONCURRENCY, ServedAnswer, ask_model, client_of
from bpac.demo.pair import ModelPair, PairModel
from bpac.gateway.chat.experts.grading import Grader, graded, grader_of
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.grading.equality import same_final

# Answers by question and model; the models of the pair are named by their roles.
Answers = dict[tuple[Question, str], Answer]


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
    known: Answers = {(one.question, one.by): one.answer for one in served}
    return await completed({role: pair.models[role] for role in ROLES}, known, served, show)


async def completed(
    models: Mapping[str, PairModel],
    known: Answers,
    served: Sequence[ServedAnswer],
    show: Callable[[int, int], None],
) -> Answers:
    """The answers of all models to every question that was served: the known ones, and the others, requested now.

    Parameters
    ----------
    models: the models by name.
    known: answers that are known.
    served: the answers that the gateway served.
    show: called with the number of answers requested so far, and with their total number.
    """
    answers = dict(known)
    asked = dict.fromkeys(one.question for one in served)
    missing = [(question, name) for question in asked for name in models if (question, name) not in answers]
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(client_of(model.base_url)) for name, model in models.items()}
        found = len(answers)
        waiting: Iterator[tuple[Question, str]] = iter(missing)

        async def work() -> None:
            for question, name in waiting:
                model = models[name]
                answers[question, name] = await ask_model(clients[name], model.name, model.body, question)
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
    loss = {
        question: await loss_of(grader, question, answers[question, "draft"], answers[question, "expert"])
        for question in {one.question for one in served}
    }
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


async def loss_of(grader: Grader, question: Question, answer: Answer, reference: Answer) -> float:
    """The loss of an answer compared with the reference; 1 if it cannot be graded."""
    grade = await graded(grader, question.prompt, answer, reference)
    return 1.0 if grade.loss is None else grade.loss
