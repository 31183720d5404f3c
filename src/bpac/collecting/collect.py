"""Asking both models every question, with every answer kept as it comes."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpac.arguments import whole
from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.collecting.answers_file import (
    KIND,
    ROLES,
    FailedRequest,
    Outcome,
    RecordedAnswer,
    RecordedQuestion,
    Role,
    read_answers,
)
from bpac.collecting.append_only_file import AppendOnlyFile
from bpac.collecting.progress import Progress
from bpac.collecting.requests import ChatModel, ModelServer, RequestTemplate, prompt_fingerprint
from bpac.collecting.workers import run_workers
from bpac.errors import AnswerError, BpacError, ModelError, SettingsError

# A model that failed so often in a row is down, or its key is wrong: to go on would only fill the file with failures.
GIVE_UP = 50
# Who was asked a question: none where there is an answer.
Failures = dict[Role, FailedRequest | None]


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """What a file of answers holds after a run.

    Parameters
    ----------
    questions: how many it is about.
    answered, failed: how many questions each model answered, and failed to answer.
    reasons: why it failed, and how often.
    asked: how many answers this run asked for; the others were there already.
    tokens: how many tokens were generated for this run.
    seconds: how long it took.
    """

    questions: int
    answered: Mapping[Role, int]
    failed: Mapping[Role, int]
    reasons: Mapping[str, int]
    asked: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CollectionRun:
    """Questions, and two models to ask.

    Parameters
    ----------
    benchmark: writes the messages.
    questions: what is asked.
    recipes: what is sent to each model.
    path: the file of answers. What it holds is not asked again.
    concurrency: the most requests under way at the same time, at both models together.
    retry_failed: whether to ask again what failed before; else a failure stands.
    more: further settings that answers depend on, as JSON values.
    """

    benchmark: Benchmark
    questions: Sequence[Question]
    recipes: Mapping[Role, RequestTemplate]
    path: Path
    concurrency: int = 8
    retry_failed: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole(self.concurrency, "concurrency", 1)

    def settings(self) -> dict[str, Any]:
        """All that the answers depend on but the questions themselves."""
        roles: dict[str, Any] = {role: self.recipes[role].settings() for role in ROLES}
        return {"benchmark": self.benchmark.name, **self.more, **roles}

    def run(self, servers: Mapping[Role, ModelServer]) -> CollectionSummary:
        """Ask, with a progress bar on standard error, until every question has its answers or failed."""
        return asyncio.run(self._with_clients(servers))

    async def _with_clients(self, servers: Mapping[Role, ModelServer]) -> CollectionSummary:
        async with servers["draft"].client() as draft, servers["expert"].client() as expert:
            return await self.ask({"draft": draft, "expert": expert})

    async def ask(self, models: Mapping[Role, ChatModel]) -> CollectionSummary:
        """As ``run``, of models that are there already."""
        recipes = [self.recipes[role] for role in ROLES]
        asked = {
            one.id: RecordedQuestion(one, prompt_fingerprint(self.benchmark, one, recipes)) for one in self.questions
        }
        with AppendOnlyFile(self.path, KIND, self.settings()) as file:
            kept = self._kept(asked)
            for id_, one in asked.items():
                # A question stands before its answers, so that a file explains itself wherever it ends.
                if id_ not in kept:
                    file.append(one.line())
                    kept[id_] = {}
            todo = [(one.question, role) for id_, one in asked.items() for role in ROLES if self._open(kept[id_], role)]
            before = len(ROLES) * len(asked) - len(todo)
            with Progress("collect", before + len(todo), before) as progress:
                work = _Work(self, models, file, progress, iter(todo), kept)
                await run_workers(min(self.concurrency, len(todo)), work.run)
                return _collected([kept[id_] for id_ in asked], len(todo), progress)

    def _kept(self, asked: Mapping[str, RecordedQuestion]) -> dict[str, Failures]:
        kept: dict[str, Failures] = {}
        for line in read_answers(self.path):
            if isinstance(line, RecordedAnswer):
                # Only whether it failed: answers with their tokens would not fit in memory.
                kept[line.id][line.role] = line.outcome if isinstance(line.outcome, FailedRequest) else None
                continue
            id_ = line.question.id
            kept[id_] = {}
            if asked.get(id_, line) != line:
                raise SettingsError(
                    f"{self.path}: question {id_!r} was another one, or was asked in other words, when the file was "
                    "begun. Begin another file"
                )
        return kept

    def _open(self, kept: Failures, role: Role) -> bool:
        return role not in kept or (self.retry_failed and kept[role] is not None)


@dataclass(slots=True)
class _Work:
    """What is still to be asked, shared by the workers that ask it."""

    collection: CollectionRun
    models: Mapping[Role, ChatModel]
    file: AppendOnlyFile
    progress: Progress
    todo: Iterator[tuple[Question, Role]]
    kept: Mapping[str, Failures]
    in_a_row: Counter[Role] = field(default_factory=Counter)

    async def run(self) -> None:
        """Take one after the other until none is left."""
        for question, role in self.todo:
            outcome = await self._outcome(question, role)
            self.file.append(RecordedAnswer(question.id, role, outcome).line())
            self.kept[question.id][role] = outcome if isinstance(outcome, FailedRequest) else None
            if isinstance(outcome, FailedRequest):
                self.progress.done(failed=True)
                self._count(role, outcome)
            else:
                self.progress.done(outcome.completion_tokens)
                self.in_a_row[role] = 0

    async def _outcome(self, question: Question, role: Role) -> Outcome:
        recipe = self.collection.recipes[role]
        try:
            return await self.models[role].complete(
                recipe.messages(self.collection.benchmark, question), **recipe.fields()
            )
        except (ModelError, AnswerError) as error:
            return FailedRequest(str(error))

    def _count(self, role: Role, failure: FailedRequest) -> None:
        self.in_a_row[role] += 1
        if self.in_a_row[role] >= GIVE_UP:
            raise BpacError(
                f"the {role} failed {GIVE_UP} times in a row, so no more is asked; what came before is kept. "
                f"Mend it, and go on with --retry-failed. The last reason: {failure.reason}"
            )


def _collected(kept: Sequence[Failures], asked: int, progress: Progress) -> CollectionSummary:
    reasons: Counter[str] = Counter()
    answered: dict[Role, int] = dict.fromkeys(ROLES, 0)
    failed: dict[Role, int] = dict.fromkeys(ROLES, 0)
    for of_question in kept:
        for role, failure in of_question.items():
            if failure is None:
                answered[role] += 1
            else:
                failed[role] += 1
                reasons[f"{role}: {failure.reason}"] += 1
    seconds = round(progress.seconds, 3)
    return CollectionSummary(len(kept), answered, failed, dict(reasons.most_common()), asked, progress.tokens, seconds)
