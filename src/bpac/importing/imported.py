"""An import of log files: what was read, the rows of the table, and what could not be used, by its reason."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bpac.benchmarks.benchmark import Message, Question
from bpac.benchmarks.own import last_text
from bpac.collecting.answers_file import ROLES
from bpac.collecting.draft_scores import DraftScores
from bpac.collecting.question_files import question_line
from bpac.errors import InputError
from bpac.importing.call import LoggedCall, Record
from bpac.importing.fields import text_of
from bpac.importing.formats import OPENTELEMETRY, READERS, detected, unwrapped
from bpac.importing.formats.opentelemetry import SpanReader
from bpac.importing.graded_pairs import GradedPair, best_score, graded, graded_row, scored
from bpac.importing.log_files import LogFile
from bpac.importing.mapping import Mapped
from bpac.importing.pairing import Pair, PairBy, Pairing
from bpac.importing.roles import Roles, SeenModels

ROLE_NAMES = (*ROLES, "both")


@dataclass(slots=True)
class LogReader:
    """Reads the calls of log files.

    Parameters
    ----------
    files: the files.
    mapped: which columns hold further values.
    format: the format of all files; none to find it in the first record of each.
    formats: the format of each file that was read, by its name.
    """

    files: Sequence[LogFile]
    mapped: Mapped
    format: str | None = None
    formats: dict[str, str] = field(default_factory=dict)

    def calls(self, progress: Callable[[LogFile, int], object]) -> Iterator[LoggedCall]:
        """Every call of all files, in order; calls that several records make up come last."""
        spans = SpanReader()
        readers = READERS | {OPENTELEMETRY: spans.calls}
        for file in self.files:
            name = self.format or ("rows" if self.mapped.only_rows else None)

            def read(position: int, file: LogFile = file) -> None:
                progress(file, position)

            for number, outer in file.records(read):
                for record in unwrapped(outer):
                    if name is None:
                        name = detected(record)
                    self.formats[file.name] = name
                    fields = self.mapped.renamed(record) if name == "rows" else record
                    for call in readers[name](fields, f"{file.name}: row {number}"):
                        yield self._mapped(call, None if name == "rows" else record)
        for call in spans.rest():
            yield self._mapped(call, {})

    def _mapped(self, call: LoggedCall, record: Record | None) -> LoggedCall:
        """A call with the values of the columns that were named; of a row they have been read."""
        if record is not None:
            self.mapped.apply(call, record)
        call.source = None
        if call.role and call.role not in ROLE_NAMES:
            raise InputError(f"{call.place}, column role: {call.role!r} is not draft or expert")
        return call


@dataclass(slots=True)
class ImportedLog:
    """The rows of all pairs, and what was left out.

    Parameters
    ----------
    roles: the two models.
    keep_questions: whether questions and answers are kept, to be written as a file of questions.
    prompts: messages that the log has apart from their answers, by trace (default: none).
    calls: the number of calls that were read.
    rows: the rows, in the order of the drafts.
    left_out: the number of calls or pairs that cannot be used, by reason; and one place for each.
    lonely: the number of answers without a counterpart, by the role of the model that answered.
    """

    roles: Roles
    keep_questions: bool = False
    prompts: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)
    calls: int = 0
    rows: list[GradedPair] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    lonely: Counter[str] = field(default_factory=Counter)
    questions: list[dict[str, Any]] = field(default_factory=list)

    def read(self, calls: Iterable[LoggedCall], pair_by: PairBy) -> None:
        """Pair and grade all calls."""
        pairing, scores = Pairing(pair_by), dict[int, DraftScores]()
        order: dict[int, int] = {}
        known: set[bytes] = set()
        found: list[tuple[int, GradedPair]] = []

        def grade(pair: Pair) -> None:
            found.append((order.pop(id(pair.draft)), graded(pair, scores.pop(id(pair.draft)))))
            order.pop(id(pair.expert), None)
            self._keep({"draft": pair.draft, "expert": pair.expert})

        for call in calls:
            if call.is_prompt:
                continue
            self.calls += 1
            role = self.roles.of(call)
            if not call.problem and not role:
                call.problem = f"the answer is of another model ({call.model})" if call.model else "it names no model"
            if call.problem:
                self._leave_out(call.problem, call.place)
            elif role == "both":
                found.append((self.calls, graded_row(call)))
            else:
                call.messages = call.messages or self.prompts.get(call.trace, ())
                if call.identity in known:
                    self._leave_out(TWICE, call.place)
                    continue
                known |= {call.identity} - {b""}
                order[id(call)] = self.calls
                if role == "draft":
                    scores[id(call)] = scored(call, self.keep_questions)
                if (pair := pairing.add(call, role)) is not None:
                    grade(pair)
        for pair in pairing.rest():
            grade(pair)
        for role, call in pairing.unpaired():
            self.lonely[role] += 1
            self._keep({role: call})
        self.rows = [row for _, row in sorted(found, key=lambda one: one[0])]

    def _leave_out(self, why: str, place: str) -> None:
        self.left_out[why] += 1
        self.examples.setdefault(why, place)

    def _keep(self, answers: dict[str, LoggedCall]) -> None:
        if not self.keep_questions:
            return
        call = next((call for call in answers.values() if call.messages), None)
        if call is None:
            self._leave_out(
                "its prompt is not in the log, so that the other model cannot be asked",
                next(iter(answers.values())).place,
            )
            return
        given = next((one.given for one in answers.values() if one.given), {})
        question = Question(
            f"{len(self.questions) + 1}-{call.trace}" if call.trace else str(len(self.questions) + 1),
            last_text(list(call.messages)),
            text_of(given.get("reference")) or None,
            text_of(given.get("category")),
            messages=call.messages,
        )
        recorded = {role: (one.model, one.answer) for role, one in answers.items() if one.answer is not None}
        self.questions.append(question_line(question, recorded))  # type: ignore[arg-type]  # roles are draft and expert

    def table(self, score: str | None) -> tuple[str, dict[str, list[Any]]]:
        """The score that was used, and the columns; rows without it are left out.

        Parameters
        ----------
        score: the score of the column ``uncertainty`` (default: the one that most rows have).
        """
        known = Counter(name for row in self.rows for name in row.scores.known)
        name = score or best_score(known)
        kept = []
        for row in self.rows:
            if name in row.scores.known:
                kept.append(row)
            else:
                why = next(iter(row.scores.unknown.values()), "")
                self._leave_out(
                    f"the draft has no score {name}" if known else NO_SCORE, f"{row.place}: {why}" if why else row.place
                )
        columns: dict[str, list[Any]] = {}
        if any(row.trace for row in kept):
            columns["id"] = [row.trace for row in kept]
        columns["uncertainty"] = [row.scores.known[name] for row in kept]
        for other, count in known.items():
            if count and kept and other != name and all(other in row.scores.known for row in kept):
                columns[f"uncertainty_{other}"] = [row.scores.known[other] for row in kept]
        # An unknown loss counts as 1, as it does in the gateway.
        columns["loss"] = [1.0 if row.loss is None else row.loss for row in kept]
        for tokens in ("draft_tokens", "expert_tokens"):
            if any(getattr(row, tokens) is not None for row in kept):
                columns[tokens] = [getattr(row, tokens) for row in kept]
        for column in dict.fromkeys(column for row in kept for column in row.columns):
            columns[column] = [row.columns.get(column) for row in kept]
        self.rows = kept
        return name, columns

    @property
    def unknown(self) -> Counter[str]:
        """Why losses of rows are unknown; they count as 1."""
        return Counter(row.unknown for row in self.rows if row.loss is None)


TWICE = "the log has the same call before: the same id, model, messages and answer"
NO_SCORE = "the draft has no score: the log has no log-probabilities, no stated confidence and no score of its own"


def seen_models(calls: Iterable[LoggedCall]) -> SeenModels:
    """The models of all calls."""
    seen = SeenModels()
    for call in calls:
        seen.add(call)
    return seen
