"""The effort dial in the demo: questions with ``reasoning_effort: "auto"``, and the actual loss of the answers."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bpac.benchmarks.benchmark import Question
from bpac.demo.client import Client, ServedAnswer, ask_all
from bpac.demo.directory import DIAL
from bpac.demo.ground_truth import Answers, completed, loss_of
from bpac.demo.pair import ModelPair, PairModel
from bpac.demo.status_lines import table_row
from bpac.gateway.chat.experts.grading import grader_of
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.shown.status import GameStatus
from bpac.local.efforts import effort_models

# What a caller sends who lets the gateway choose the effort.
AUTO: Mapping[str, Any] = {"reasoning_effort": "auto"}
# The pair gets so many questions for each one that the dial gets. With the default number of questions that is enough
# for most answers to come from a cheaper effort.
PAIR_QUESTIONS = 5
# The pair's models are the dial's first and last effort, so that their answers need not be requested twice.
_EFFORTS = {"draft": "effort-none", "expert": "effort-high"}


@dataclass(frozen=True, slots=True)
class DialTruth:
    """Actual losses of the dial.

    Parameters
    ----------
    served_loss: average loss of the served answers, compared with the last effort's.
    effort_losses: average loss of always serving one effort, by name; without the last, whose loss is 0.
    """

    served_loss: float
    effort_losses: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DialReport:
    """The results of the dial.

    Parameters
    ----------
    questions: number of questions that were answered.
    wanted: number of questions that were to be answered.
    seconds: time that they took.
    answered: number of answers by effort, cheapest first, as the responses name it.
    game: status of the dial's game at the end.
    truth: actual losses; None if the demo was stopped before they were known.
    """

    questions: int
    wanted: int
    seconds: float
    answered: Mapping[str, int]
    game: GameStatus
    truth: DialTruth | None

    @property
    def complete(self) -> bool:
        """Whether all questions were answered and the actual loss is known."""
        return self.questions >= self.wanted and self.truth is not None

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        truth = self.truth
        return {
            "questions": self.questions,
            "complete": self.complete,
            "seconds": round(self.seconds, 3),
            "answered": dict(self.answered),
            "game": {"route": self.game.route, **self.game.to_json()},
            "truth": truth and {"served_loss": truth.served_loss, "effort_losses": dict(truth.effort_losses)},
        }

    def lines(self) -> list[str]:
        """The report as text."""
        if not self.questions:
            return ["The effort dial was sent no question: the demo was stopped before."]
        summary = self.game.summary
        lines = [
            f'The effort dial behind the gateway, with reasoning_effort "auto": {self.questions:,} questions in '
            f"{self.seconds:.0f} s, ε = {summary.epsilon:g}, α = {summary.alpha:g}",
            *dial_table(self.answered, self.game),
        ]
        if self.truth is None:
            return [*lines, "The actual loss of the dial is not known: the demo was stopped before."]
        always = "".join(f"; always {effort}: {loss:.2%}" for effort, loss in self.truth.effort_losses.items())
        return [
            *lines,
            table_row("actual loss", f"{self.truth.served_loss:.2%}", f"limit: {summary.epsilon:.2%}{always}"),
        ]


@dataclass(slots=True)
class DialSession:
    """The part of a demo in which the dial is sent questions.

    Parameters
    ----------
    wanted: number of questions that are to be answered.
    route: settings of the dial's route.
    served: the answers so far.
    truth: actual losses, once they are known.
    began, ended: when the first and the last question were sent; None before.
    """

    wanted: int
    route: RouteSettings
    served: list[ServedAnswer] = field(default_factory=list)
    truth: DialTruth | None = None
    began: float | None = None
    ended: float | None = None

    @property
    def seconds(self) -> float:
        """Time that the questions took so far."""
        return 0.0 if self.began is None else (self.ended or time.monotonic()) - self.began

    async def ask(self, client: Client, questions: Iterable[Question]) -> None:
        """Send the questions, and let the gateway choose the effort of each."""
        self.began = time.monotonic()
        await ask_all(client, DIAL, questions, self.served.append, AUTO)
        self.ended = time.monotonic()

    def table(self, game: GameStatus) -> tuple[list[str], str]:
        """Progress as a table and as one line.

        Parameters
        ----------
        game: status of the dial's game.
        """
        progress = f"of {self.wanted:,}, to the effort dial"
        answered = self._answered()
        rows = [table_row("questions", f"{len(self.served):,}", progress), *dial_table(answered, game)]
        efforts = ", ".join(f"{effort} {number:,}" for effort, number in answered.items())
        return rows, f"{len(self.served):,} {progress}: {efforts}"

    def report(self, game: GameStatus) -> DialReport:
        """The results so far.

        Parameters
        ----------
        game: status of the dial's game.
        """
        return DialReport(len(self.served), self.wanted, self.seconds, self._answered(), game, self.truth)

    def _answered(self) -> dict[str, int]:
        """The number of answers of each effort, cheapest first."""
        counts = dict.fromkeys((model.name for model in self.route.models), 0)
        for one in self.served:
            counts[one.model] += 1
        return counts


def dial_table(answered: Mapping[str, int], game: GameStatus) -> list[str]:
    """Which effort answered how often, what it cost, and the certificate, one line each."""
    count, cost, certificate = max(sum(answered.values()), 1), game.cost, game.summary.certificate
    lines = [
        table_row(effort, f"{number / count:.1%}", f"{number:,} of {count:,} answers")
        for effort, number in answered.items()
    ]
    if cost is not None:
        last = list(answered)[-1]
        share = f"{cost['mean'] / cost['always']:.1%}"
        lines.append(table_row("cost", share, f"of always asking {last}, by call_prices, audits included"))
    bound = f"average loss per request so far, {certificate.confidence:.0%} confidence"
    return [*lines, table_row("certificate", f"≤ {certificate.average_upper:.2%}", bound)]


async def dial_truth(
    pair: ModelPair,
    served: Sequence[ServedAnswer],
    known: Answers,
    route: RouteSettings,
    show: Callable[[int, int], None],
) -> DialTruth:
    """Actual losses: all efforts answer every question, as far as their answers are not known.

    Parameters
    ----------
    pair: the local pair, whose server has the dial.
    served: the answers that the gateway served; at least one.
    known: answers of the pair.
    route: settings of the dial's route, whose grader is used again.
    show: called with the number of answers requested so far, and with their total number.
    """
    tables = effort_models(pair.models["draft"].base_url)
    models = {name: PairModel(table["base_url"], table["model"], table["body"]) for name, table in tables.items()}
    answers = {(question, _EFFORTS[role]): answer for (question, role), answer in known.items()}
    answers |= {(one.question, one.model): one.answer for one in served}
    answers = await completed(models, answers, served, show)
    grader = grader_of(route)
    assert grader is not None  # the demo's routes grade their answers themselves
    *cheaper, last = models
    losses = {(one.question, last): 0.0 for one in served}
    for question in {one.question for one in served}:
        for effort in cheaper:
            losses[question, effort] = await loss_of(
                grader, question, answers[question, effort], answers[question, last]
            )
    return DialTruth(
        served_loss=sum(losses[one.question, one.model] for one in served) / len(served),
        effort_losses={effort: sum(losses[one.question, effort] for one in served) / len(served) for effort in cheaper},
    )
