"""``bpac collect``: ask both models every question and write each answer to a file as soon as it arrives."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpac.answer import Answer
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
from bpac.errors import AnswerError, BpacError, InputError, ModelError, SettingsError

# The run ends after this many failures of one model in a row: the model is down, or its API key is wrong.
GIVE_UP = 50
# The models that were asked a question; the value is the failure, or none if the model answered.
Failures = dict[Role, FailedRequest | None]


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """The contents of the answers file after a run.

    Parameters
    ----------
    questions: number of questions.
    answered, failed: number of questions that each model answered, and failed to answer.
    reasons: the reasons for failures, and how often each occurred.
    asked: number of requests sent in this run; the other answers were already in the file.
    tokens: number of tokens generated in this run.
    seconds: duration of this run.
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
    """One run of ``bpac collect``; a run that was stopped can be continued.

    Parameters
    ----------
    benchmark: writes the messages that ask a question.
    questions: the questions to ask.
    templates: the other contents of the requests to each model.
    path: the answers file. Questions that it already answers are not asked again.
    concurrency: largest number of concurrent requests, to both models together (default: 8).
    retry_failed: retry requests that failed in an earlier run (default: false, failures are kept).
    more: further settings that the answers depend on, as JSON values (default: none).
    recorded: answers that are known already, by question and model; these are not asked for (default: none).
    """

    benchmark: Benchmark
    questions: Sequence[Question]
    templates: Mapping[Role, RequestTemplate]
    path: Path
    concurrency: int = 8
    retry_failed: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)
    recorded: Mapping[str, Mapping[Role, Answer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole(self.concurrency, "concurrency", 1)

    def settings(self) -> dict[str, Any]:
        """Everything that the answers depend on, except for the questions."""
        roles: dict[str, Any] = {role: self.templates[role].settings() for role in ROLES}
        return {"benchmark": self.benchmark.name, **self.more, **roles}

    def run(self, servers: Mapping[Role, ModelServer]) -> CollectionSummary:
        """Ask both models every question, with a progress bar on standard error.

        Parameters
        ----------
        servers: the model servers; one may be left out if all of its answers are recorded.
        """
        return asyncio.run(self._with_clients(servers))

    async def _with_clients(self, servers: Mapping[Role, ModelServer]) -> CollectionSummary:
        async with AsyncExitStack() as stack:
            return await self.ask(
                {role: await stack.enter_async_context(server.client()) for role, server in servers.items()}
            )

    async def ask(self, models: Mapping[Role, ChatModel]) -> CollectionSummary:
        """As ``run``, with clients that are already open."""
        templates = [self.templates[role] for role in ROLES]
        asked = {
            one.id: RecordedQuestion(one, prompt_fingerprint(self.benchmark, one, templates)) for one in self.questions
        }
        with AppendOnlyFile(self.path, KIND, self.settings()) as file:
            recorded = self._recorded(asked)
            for id_, one in asked.items():
                # A question is written before its answers, so that the file is complete wherever it ends.
                if id_ not in recorded:
                    file.append(one.line())
                    recorded[id_] = {}
                for role, answer in self.recorded.get(id_, {}).items():
                    if role not in recorded[id_]:
                        file.append(RecordedAnswer(id_, role, answer).line())
                        recorded[id_][role] = None
            todo = [
                (one.question, role)
                for id_, one in asked.items()
                for role in ROLES
                if self._is_missing(recorded[id_], role)
            ]
            for role in ROLES:
                lacking = sum(asks == role for _, asks in todo)
                if lacking and role not in models:
                    raise InputError(
                        f"{lacking} of {len(asked)} questions have no recorded answer of the {role}: give "
                        f"--{role}-url and --{role}-model, so that it can be asked"
                    )
            before = len(ROLES) * len(asked) - len(todo)
            with Progress("collect", before + len(todo), before) as progress:
                work = _Work(self, models, file, progress, iter(todo), recorded)
                await run_workers(min(self.concurrency, len(todo)), work.run)
                return _summary([recorded[id_] for id_ in asked], len(todo), progress)

    def _recorded(self, asked: Mapping[str, RecordedQuestion]) -> dict[str, Failures]:
        recorded: dict[str, Failures] = {}
        for line in read_answers(self.path):
            if isinstance(line, RecordedAnswer):
                # Only whether it failed: the answers with their tokens would not fit in memory.
                recorded[line.id][line.role] = line.outcome if isinstance(line.outcome, FailedRequest) else None
                continue
            id_ = line.question.id
            recorded[id_] = {}
            if asked.get(id_, line) != line:
                raise SettingsError(
                    f"{self.path}: question {id_!r} or its prompt has changed since this file was started. "
                    "Use another file for --out"
                )
        return recorded

    def _is_missing(self, recorded: Failures, role: Role) -> bool:
        return role not in recorded or (self.retry_failed and recorded[role] is not None)


@dataclass(slots=True)
class _Work:
    """The requests that are still to be sent, shared by the workers that send them."""

    collection: CollectionRun
    models: Mapping[Role, ChatModel]
    file: AppendOnlyFile
    progress: Progress
    todo: Iterator[tuple[Question, Role]]
    recorded: Mapping[str, Failures]
    in_a_row: Counter[Role] = field(default_factory=Counter)

    async def run(self) -> None:
        """Send one request after the other until none is left."""
        for question, role in self.todo:
            outcome = await self._outcome(question, role)
            self.file.append(RecordedAnswer(question.id, role, outcome).line())
            self.recorded[question.id][role] = outcome if isinstance(outcome, FailedRequest) else None
            if isinstance(outcome, FailedRequest):
                self.progress.done(failed=True)
                self._count(role, outcome)
            else:
                self.progress.done(outcome.completion_tokens)
                self.in_a_row[role] = 0

    async def _outcome(self, question: Question, role: Role) -> Outcome:
        template = self.collection.templates[role]
        try:
            return await self.models[role].complete(
                template.messages(self.collection.benchmark, question), **template.fields()
            )
        except (ModelError, AnswerError) as error:
            return FailedRequest(str(error))

    def _count(self, role: Role, failure: FailedRequest) -> None:
        self.in_a_row[role] += 1
        if self.in_a_row[role] >= GIVE_UP:
            raise BpacError(
                f"the {role} failed {GIVE_UP} times in a row, so the run was stopped; the answers so far are kept. "
                f"Fix the problem and run the command again with --retry-failed. The last failure: {failure.reason}"
            )


def _summary(recorded: Sequence[Failures], asked: int, progress: Progress) -> CollectionSummary:
    reasons: Counter[str] = Counter()
    answered: dict[Role, int] = dict.fromkeys(ROLES, 0)
    failed: dict[Role, int] = dict.fromkeys(ROLES, 0)
    for failures in recorded:
        for role, failure in failures.items():
            if failure is None:
                answered[role] += 1
            else:
                failed[role] += 1
                reasons[f"{role}: {failure.reason}"] += 1
    seconds = round(progress.seconds, 3)
    return CollectionSummary(
        len(recorded), answered, failed, dict(reasons.most_common()), asked, progress.tokens, seconds
    )
