"""The answers file: one line for each question, and one line for each answer or failed request."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bpac.answer import Answer, Token
from bpac.benchmarks.benchmark import Question
from bpac.collecting.append_only_file import read_lines
from bpac.errors import TableError

KIND = "answers"
Role = Literal["draft", "expert"]
ROLES: tuple[Role, ...] = ("draft", "expert")
# The log-probability that servers write for probability 0, because JSON has no infinity.
IMPOSSIBLE = -9999.0


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """A question in the answers file.

    Parameters
    ----------
    question: the question, with its correct answer.
    prompt_hash: a hash of the messages that ask it.
    """

    question: Question
    prompt_hash: str

    def line(self) -> dict[str, Any]:
        """The line in the file."""
        question = self.question
        messages = {"messages": list(question.messages)} if question.messages else {}
        return {
            "question": question.id,
            "prompt": question.prompt,
            "reference": question.reference,
            "category": question.category,
            "options": list(question.options),
            "prompts": self.prompt_hash,
            **messages,
        }


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request that failed.

    Parameters
    ----------
    reason: the error message of the model's client.
    """

    reason: str


Outcome = Answer | FailedRequest


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer or a failed request in the answers file.

    Parameters
    ----------
    id: the id of the question.
    role: the model that was asked.
    outcome: the answer, or the failed request.
    """

    id: str
    role: Role
    outcome: Outcome

    def line(self) -> dict[str, Any]:
        """The line in the file."""
        if isinstance(self.outcome, FailedRequest):
            return {"id": self.id, "role": self.role, "failure": self.outcome.reason}
        return {"id": self.id, "role": self.role, **answer_line(self.outcome)}


def read_answers(path: Path) -> Iterator[RecordedQuestion | RecordedAnswer]:
    """The contents of an answers file, in order; a question comes before its answers.

    If a model answered a question more than once, the last answer counts.
    """
    asked = set()
    for line in read_lines(path, KIND):
        try:
            read = _read(line)
        except (KeyError, TypeError, ValueError) as error:
            raise TableError(
                f"{path}: a line is neither a question nor an answer ({error!r}): {str(line)[:80]}"
            ) from error
        if isinstance(read, RecordedQuestion):
            asked.add(read.question.id)
        elif read.id not in asked:
            raise TableError(f"{path}: the question {read.id!r} is missing before its answer")
        yield read


def _read(line: Mapping[str, Any]) -> RecordedQuestion | RecordedAnswer:
    if "question" in line:
        question = Question(
            line["question"],
            line["prompt"],
            line["reference"],
            line["category"],
            tuple(line["options"]),
            tuple(line.get("messages", ())),
        )
        return RecordedQuestion(question, line["prompts"])
    role: Role = line["role"]
    if role not in ROLES:
        raise ValueError(f"role {role!r}")
    if "failure" in line:
        return RecordedAnswer(line["id"], role, FailedRequest(line["failure"]))
    return RecordedAnswer(line["id"], role, read_answer(line))


def answer_line(answer: Answer) -> dict[str, Any]:
    """An answer as JSON values, from which ``read_answer`` makes the same answer."""
    line: dict[str, Any] = {
        "text": answer.text,
        "reasoning": answer.reasoning,
        "completion_tokens": answer.completion_tokens,
        "prompt_tokens": answer.prompt_tokens,
        "finish_reason": answer.finish_reason,
    }
    if answer.tool_calls:
        line["tool_calls"] = [dict(call) for call in answer.tool_calls]
    if answer.tokens is not None:
        # One list per field: otherwise the names of the fields would be most of the file.
        line["tokens"] = [token.text for token in answer.tokens]
        line["logprobs"] = [_written(token.logprob) for token in answer.tokens]
        if any(token.top for token in answer.tokens):
            line["top"] = [[_written(logprob) for logprob in token.top] for token in answer.tokens]
            line["top_texts"] = [list(token.top_texts) for token in answer.tokens]
    return line


def read_answer(line: Mapping[str, Any]) -> Answer:
    """The answer that ``answer_line`` wrote."""
    tokens = None
    if "tokens" in line:
        none: list[list[Any]] = [[]] * len(line["tokens"])
        columns = zip(line["tokens"], line["logprobs"], line.get("top", none), line.get("top_texts", none), strict=True)
        tokens = tuple(
            Token(text, _number(logprob), tuple(map(_number, top)), tuple(texts))
            for text, logprob, top, texts in columns
        )
    return Answer(
        text=line["text"],
        reasoning=line["reasoning"],
        tokens=tokens,
        completion_tokens=line["completion_tokens"],
        prompt_tokens=line["prompt_tokens"],
        finish_reason=line["finish_reason"],
        tool_calls=tuple(line.get("tool_calls", ())),
    )


def _written(logprob: float) -> float | None:
    """Seven digits, which is more than the half precision that servers compute with."""
    if logprob == -math.inf:
        return IMPOSSIBLE
    return float(f"{logprob:.7g}") if math.isfinite(logprob) else None


def _number(logprob: float | None) -> float:
    if logprob is None:
        return math.nan
    return -math.inf if logprob <= IMPOSSIBLE else float(logprob)
