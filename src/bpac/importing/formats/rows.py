"""Rows with any column names: one row per question with both answers or a known loss, or one row per call.

Columns are found by their usual names; ``--map`` names others.
"""

import math
from collections.abc import Iterator
from typing import Any

from bpac.answer import Answer, Token, split_reasoning
from bpac.errors import TableError
from bpac.importing.call import LoggedCall, Record
from bpac.importing.fields import answer_of, count_of, decoded, first_of, messages_of, text_of

# The usual names of each value.
NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id", "trace_id", "traceId", "request_id", "question_id"),
    "prompt": ("prompt", "question", "messages", "input"),
    "model": ("model", "model_name"),
    "role": ("role",),
    "answer": ("answer", "output", "completion", "response", "text"),
    "draft": ("draft", "draft_answer", "draft_text"),
    "expert": ("expert", "expert_answer", "expert_text"),
    "logprobs": ("logprobs", "draft_logprobs", "token_logprobs"),
    "tokens": ("tokens", "completion_tokens", "output_tokens"),
    "finish_reason": ("finish_reason",),
}
# Values that go into the table as they are.
GIVEN: dict[str, tuple[str, ...]] = {
    "uncertainty": ("uncertainty",),
    "confidence": ("confidence",),
    "loss": ("loss",),
    "draft_correct": ("draft_correct", "instant_correct"),
    "expert_correct": ("expert_correct",),
    "draft_tokens": ("draft_tokens", "instant_token"),
    "expert_tokens": ("expert_tokens", "expert_token"),
    "reference": ("reference", "correct_answer", "truth"),
    "category": ("category", "task", "segment"),
}
FEATURE = "feature_"


def calls(record: Record, place: str) -> Iterator[LoggedCall]:
    """The call of a row, or the two calls of a row with both answers, or a call with a loss and no answer."""
    values = {name: first_of(record, *columns) for name, columns in NAMES.items()}
    trace, messages = text_of(values["id"]), messages_of(values["prompt"])
    given = {name: found for name, columns in GIVEN.items() if (found := first_of(record, *columns)) is not None}
    given |= {
        name: value for name, value in record.items() if str(name).startswith(FEATURE) and value not in (None, "")
    }
    if values["draft"] is not None or values["expert"] is not None:
        # The row itself is what the two answers share: ids may repeat.
        for role in ("draft", "expert"):
            answer = _answer(values[role], values, place) if values[role] is not None else None
            problem = "" if answer is not None else f"the row has no answer of the {role}"
            call = LoggedCall(place, (role,), answer, problem, f"{place} {trace}".strip(), messages, role)
            call.given = given if role == "draft" else {}
            yield call
        return
    if "loss" in given or {"draft_correct", "expert_correct"} <= set(given):
        yield LoggedCall(place, (), None, "", trace, messages, "both", given)
        return
    answer = _answer(values["answer"], values, place) if values["answer"] is not None else None
    names = (text_of(values["model"]),) if text_of(values["model"]) else ()
    problem = "" if answer is not None else "the row has neither an answer nor a loss"
    yield LoggedCall(place, names, answer, problem, trace, messages, text_of(values["role"]).lower(), given)


def _answer(value: Any, values: dict[str, Any], place: str) -> Answer | None:
    answer = answer_of(value) if isinstance(decoded(value), dict) else None
    if answer is not None:
        return answer
    reasoning, text = split_reasoning(text_of(value))
    if not text.strip():
        return None
    return Answer(
        text,
        reasoning,
        tokens=_tokens(values["logprobs"], place),
        completion_tokens=count_of(values["tokens"]) or 0,
        finish_reason=text_of(values["finish_reason"]) or "stop",
    )


def _tokens(value: Any, place: str) -> tuple[Token, ...] | None:
    """Tokens from a list of log-probabilities."""
    listed = decoded(value)
    if listed is None:
        return None
    try:
        found = tuple(Token("", math.nan if one is None else float(one)) for one in listed)
    except (TypeError, ValueError) as error:
        raise TableError(f"{place}, column logprobs: {str(value)[:40]!r} is not a list of log-probabilities") from error
    return found or None
