"""``bpac grade``: the loss of each draft from the two answers to a question, or the reason why it is unknown."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bpac import __version__
from bpac.answer import Answer
from bpac.arguments import whole
from bpac.benchmarks.benchmark import Benchmark, Question, never_graded
from bpac.collecting.answers_file import KIND as ANSWERS
from bpac.collecting.answers_file import ROLES, FailedRequest, Outcome, RecordedQuestion, Role, read_answers
from bpac.collecting.append_only_file import AppendOnlyFile, read_lines, read_settings
from bpac.collecting.draft_scores import DraftScores, score_draft
from bpac.collecting.progress import Progress
from bpac.collecting.workers import run_workers
from bpac.errors import AnswerError, InputError, ModelError, TableError
from bpac.grading.text.answer_text import Verdict
from bpac.losses import compared_loss, correctness_loss, mark_loss
from bpac.models.judging import Judge

KIND = "grades"


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of grading a question.

    Parameters
    ----------
    id, category: the id and category of the question.
    of: a hash of the graded answers; a question is graded again if its answers change.
    unknown: why the loss is unknown, in a few words; empty if the loss is known.
    reason: the same with details.
    loss: the loss of the draft; none if it is unknown.
    draft_correct, expert_correct: the verdicts, if the question has a correct answer.
    draft_mark, expert_mark: the marks of a judge, if one was used.
    draft_tokens, expert_tokens: the number of tokens of each answer, if known.
    scores: the uncertainty of the draft by every score that can be computed.
    unscored: the reasons why the other scores cannot be computed.
    """

    id: str
    category: str
    of: str
    unknown: str = ""
    reason: str = ""
    loss: float | None = None
    draft_correct: bool | None = None
    expert_correct: bool | None = None
    draft_mark: float | None = None
    expert_mark: float | None = None
    draft_tokens: int | None = None
    expert_tokens: int | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    unscored: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Pair:
    """A question with both outcomes; tokens are dropped once the scores are computed."""

    question: Question
    outcomes: dict[Role, Outcome] = field(default_factory=dict)
    scores: DraftScores = field(default_factory=DraftScores)

    def answers_hash(self) -> str:
        seen = []
        for role in ROLES:
            outcome = self.outcomes.get(role)
            seen.append(
                [outcome.text, outcome.finish_reason]
                if isinstance(outcome, Answer)
                else outcome and [None, outcome.reason]
            )
        return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:16]

    def problem(self) -> tuple[str, str] | None:
        """Why there is nothing to grade, in a few words and with details."""
        for role in ROLES:
            outcome = self.outcomes.get(role)
            if outcome is None:
                return f"the {role} was not asked yet", "bpac collect has not finished"
            if isinstance(outcome, FailedRequest):
                return f"the {role} failed", outcome.reason
            if not outcome.text.strip() and not outcome.tool_calls:
                # Often a server that returns the whole answer as reasoning; this must not count as a wrong answer.
                words = "'s answer is empty" if outcome.finished else " was cut off"
                return f"the {role}{words}", f"empty answer with finish reason {outcome.finish_reason}"
        return None


@dataclass(frozen=True, slots=True)
class GradingRun:
    """One run of ``bpac grade``; a run that was stopped can be continued.

    Parameters
    ----------
    benchmark: the benchmark of the questions, which grades the answers.
    answers: the answers file.
    path: the grades file. Questions that it contains are not graded again, unless their answers have changed.
    judge: an LLM judge that marks the answers instead of the benchmark; open questions need one (default: none).
    judged_by: the settings of the judge, as JSON values.
    concurrency: largest number of concurrent judgements (default: 8).
    retry_failed: grade again what could not be graded in an earlier run (default: false).
    """

    benchmark: Benchmark
    answers: Path
    path: Path
    judge: Judge | None = None
    judged_by: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 8
    retry_failed: bool = False

    def __post_init__(self) -> None:
        whole(self.concurrency, "concurrency", 1)
        if self.judge is None and self.benchmark.verdict is never_graded:
            raise InputError(
                f"the questions of {self.benchmark.name} are open-ended: a judge must mark the answers "
                "(--judge-url and --judge-model)"
            )

    def settings(self) -> dict[str, Any]:
        """Everything that the grades depend on, except for the answers."""
        judge = dict(self.judged_by) if self.judge else None
        return {"answers": read_settings(self.answers, ANSWERS), "judge": judge, "bpac": __version__}

    async def run(self) -> list[Grade]:
        """The grade of every question, in the order of the answers, with a progress bar on standard error."""
        with AppendOnlyFile(self.path, KIND, self.settings()) as file:
            grades = {grade.id: grade for grade in read_grades(self.path)}
            pairs = _pairs(self.answers)
            todo = [pair for pair in pairs if self._is_due(grades.get(pair.question.id), pair)]
            with Progress("grade", len(pairs), len(pairs) - len(todo), "question") as progress:
                work = iter(todo)

                async def worker() -> None:
                    for pair in work:
                        grade = await self._grade(pair)
                        file.append(asdict(grade))
                        grades[grade.id] = grade
                        progress.done(failed=bool(grade.unknown))

                await run_workers(min(self.concurrency, len(todo)), worker)
        return [grades[pair.question.id] for pair in pairs]

    def _is_due(self, grade: Grade | None, pair: _Pair) -> bool:
        return grade is None or grade.of != pair.answers_hash() or (self.retry_failed and bool(grade.unknown))

    async def _grade(self, pair: _Pair) -> Grade:
        tokens = [_tokens(pair.outcomes.get(role)) for role in ROLES]
        grade = Grade(
            id=pair.question.id,
            category=pair.question.category,
            of=pair.answers_hash(),
            draft_tokens=tokens[0],
            expert_tokens=tokens[1],
            scores=pair.scores.known,
            unscored=pair.scores.unknown,
        )
        if self.judge is None:
            verdicts = [self._verdict(pair, role) for role in ROLES]
            grade = replace(grade, draft_correct=verdicts[0], expert_correct=verdicts[1])
        problem = pair.problem()
        if problem:
            return replace(grade, unknown=problem[0], reason=problem[1])
        draft, expert = (outcome for role in ROLES if isinstance(outcome := pair.outcomes[role], Answer))
        if self.judge is None and pair.question.reference is None and self.benchmark.compares_answers:
            return _by_comparison(grade, draft, expert)
        if self.judge is None:
            return _by_verdicts(grade, draft, expert)
        return await self._by_marks(self.judge, grade, pair.question, draft, expert)

    def _verdict(self, pair: _Pair, role: Role) -> Verdict:
        outcome = pair.outcomes.get(role)
        if not isinstance(outcome, Answer) or not outcome.text.strip():
            return None
        return self.benchmark.grade(pair.question, outcome.text, outcome.finished)

    async def _by_marks(self, judge: Judge, grade: Grade, question: Question, draft: Answer, expert: Answer) -> Grade:
        for role, answer in zip(ROLES, (draft, expert), strict=True):
            if not answer.finished:
                return replace(grade, unknown=f"the {role} was cut off", reason=answer.finish_reason)
        try:
            marks = await judge.marks(question.prompt, draft.text, expert.text)
        except (ModelError, AnswerError) as error:
            return replace(grade, unknown="the judge gave no mark", reason=str(error))
        return replace(grade, draft_mark=marks[0], expert_mark=marks[1], loss=mark_loss(*marks))


def _by_verdicts(grade: Grade, draft: Answer, expert: Answer) -> Grade:
    verdicts = (grade.draft_correct, grade.expert_correct)
    for role, verdict, answer in zip(ROLES, verdicts, (draft, expert), strict=True):
        if verdict is None:
            cut = not answer.finished
            words = f"the {role} was cut off" if cut else f"the {role}'s answer cannot be graded"
            return replace(grade, unknown=words, reason=f"{answer.finish_reason}: {answer.text[-80:]!r}")
    return replace(grade, loss=correctness_loss(grade.draft_correct is True, grade.expert_correct is True))


def _by_comparison(grade: Grade, draft: Answer, expert: Answer) -> Grade:
    loss = compared_loss(draft, expert)
    if loss is not None:
        return replace(grade, loss=loss)
    for role, answer in zip(ROLES, (draft, expert), strict=True):
        if not answer.finished:
            return replace(grade, unknown=f"the {role} was cut off", reason=answer.finish_reason)
    return replace(grade, unknown="the answers cannot be compared", reason=f"{draft.text[-80:]!r}")


def read_grades(path: Path) -> Iterator[Grade]:
    """The grades in a file, in order. If a question was graded more than once, the last grade counts."""
    for line in read_lines(path, KIND):
        try:
            yield Grade(**line)
        except TypeError as error:
            raise TableError(f"{path}: a line is not a grade ({error}): {str(line)[:80]}") from error


def _pairs(path: Path) -> Sequence[_Pair]:
    pairs: dict[str, _Pair] = {}
    for line in read_answers(path):
        if isinstance(line, RecordedQuestion):
            pairs[line.question.id] = _Pair(line.question)
            continue
        pair, outcome = pairs[line.id], line.outcome
        if line.role == "draft" and isinstance(outcome, Answer):
            pair.scores = score_draft(pair.question, outcome)
        pair.outcomes[line.role] = replace(outcome, tokens=None) if isinstance(outcome, Answer) else outcome
    return list(pairs.values())


def _tokens(outcome: Outcome | None) -> int | None:
    # 0 means that the server does not count tokens: every answer has at least one.
    return (outcome.completion_tokens or None) if isinstance(outcome, Answer) else None
