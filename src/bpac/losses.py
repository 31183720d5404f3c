"""Losses: how much worse a draft is than the expert's answer, as a number in [0, 1]."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from bpac.answer import Answer
from bpac.errors import InputError, SettingsError
from bpac.grading.equality import same_final
from bpac.grading.judge import HIGHEST, LOWEST
from bpac.grading.text.answer_text import Verdict
from bpac.grading.text.json_equality import comparable, parse_comparable

# Answers with more tool calls than this are not compared.
MOST_CALLS = 128
Equal = Callable[[str, str], Verdict]


class Loss(Protocol):
    """A loss: a callable that returns the loss of a draft in [0, 1], or ``None`` if it is unknown."""

    def __call__(self, draft: Answer, expert: Answer) -> float | None:
        """The loss of the draft against the expert's answer."""


def correctness_loss(draft_correct: bool, expert_correct: bool) -> float:
    """1 if the draft is wrong and the expert is correct, otherwise 0.

    >>> correctness_loss(draft_correct=False, expert_correct=True)
    1.0
    """
    return float(expert_correct and not draft_correct)


@dataclass(frozen=True, slots=True)
class AnswerLoss:
    """0–1 loss of an answer, compared with the correct answer if it is known, otherwise with the expert's answer.

    The loss is unknown (``None``) if it depends on texts that cannot be compared; a router counts that as 1.

    Parameters
    ----------
    equal: whether two texts give the same answer, or ``None`` if unknown; a known correct answer is the second text
        (default: whether both give the same final answer).
    truth: the correct answer. With it, the loss is 1 only if the draft is wrong and the expert is correct (default:
        none, and the loss is 1 if the draft differs from the expert).

    >>> AnswerLoss(str.__eq__)(Answer("41"), Answer("42"))
    1.0
    >>> AnswerLoss(str.__eq__, truth="43")(Answer("41"), Answer("42"))
    0.0
    """

    equal: Equal = same_final
    truth: str | None = None

    def __call__(self, draft: Answer, expert: Answer) -> float | None:
        """The loss of the draft."""
        if self.truth is None:
            same = self.equal(draft.text, expert.text)
            return None if same is None else float(not same)
        correct, expert_correct = self.equal(draft.text, self.truth), self.equal(expert.text, self.truth)
        if correct or expert_correct is False:
            return 0.0
        return None if correct is None or expert_correct is None else correctness_loss(correct, expert_correct)


def mark_loss(draft_mark: float, expert_mark: float) -> float:
    """The loss of a draft by a judge's marks from 1 to 10: the square root of the difference divided by 9.

    The loss is 0 if the draft's mark is at least the expert's.

    >>> mark_loss(7.0, 8.0)
    0.3333333333333333
    >>> mark_loss(9.0, 8.0)
    0.0
    """
    for mark in (draft_mark, expert_mark):
        if not LOWEST <= mark <= HIGHEST:
            raise InputError(f"a mark must be from {LOWEST:g} to {HIGHEST:g}, got {mark!r}: ask the judge again")
    return math.sqrt(max(0.0, expert_mark - draft_mark) / (HIGHEST - LOWEST))


def cosine_distance(draft: ArrayLike, expert: ArrayLike) -> float:
    """One minus the cosine similarity of two embeddings, at most 1.

    >>> cosine_distance([1.0, 0.0], [1.0, 1.0]).__round__(6)
    0.292893
    """
    one, other = np.asarray(draft, dtype=np.float64), np.asarray(expert, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise InputError(f"embeddings must be two vectors of the same size, got shapes {one.shape} and {other.shape}")
    length = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    # Also false for NaN.
    if not 0.0 < length < math.inf:
        raise InputError("an embedding is zero or not finite, so its direction cannot be compared")
    return min(1.0, max(0.0, 1.0 - float(one @ other) / length))


@dataclass(frozen=True, slots=True)
class EmbeddingLoss:
    """The cosine distance between the embeddings of the two texts.

    Parameters
    ----------
    embed: a function that returns the embedding of a text.
    """

    embed: Callable[[str], ArrayLike]

    def __call__(self, draft: Answer, expert: Answer) -> float:
        """The loss of the draft."""
        return cosine_distance(self.embed(draft.text), self.embed(expert.text))


@dataclass(frozen=True, slots=True)
class ToolCallLoss:
    """0 if the draft makes the same tool calls as the expert, otherwise 1.

    Names and arguments are compared, ids are not. Arguments are compared as JSON values: spacing and the order of keys
    do not matter, and 1 equals 1.0 but neither ``true`` nor ``"1"``. If a call of either answer is malformed or has a
    duplicate key, the loss is 1. If neither answer makes a call, the loss is that of ``text``, or 0 without it.

    Parameters
    ----------
    ordered: whether the order of the calls matters (default: false).
    text: the loss of two answers without tool calls (default: none).

    >>> call = {"function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    >>> same = {"function": {"name": "add", "arguments": '{"b":2.0,"a":1}'}}
    >>> ToolCallLoss()(Answer("", tool_calls=(call,)), Answer("", tool_calls=(same,)))
    0.0
    """

    ordered: bool = False
    text: Loss | None = None

    def __call__(self, draft: Answer, expert: Answer) -> float | None:
        """The loss of the draft."""
        if not draft.tool_calls and not expert.tool_calls and self.text is not None:
            return self.text(draft, expert)
        if max(len(draft.tool_calls), len(expert.tool_calls)) > MOST_CALLS:
            return None
        try:
            ours, theirs = ([_comparable_call(call) for call in answer.tool_calls] for answer in (draft, expert))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return 1.0
        return float(ours != theirs if self.ordered else Counter(ours) != Counter(theirs))


def compared_loss(draft: Answer, expert: Answer, truth: str | None = None) -> float | None:
    """The loss of a recorded draft by its tool calls or its final answer; ``None`` if it is unknown.

    An answer that was cut off might have gone on in any way, so its loss is unknown.

    Parameters
    ----------
    draft, expert: the two answers.
    truth: the correct answer (default: none, and the draft is compared with the expert).

    >>> compared_loss(Answer("41"), Answer("42")), compared_loss(Answer("4", finish_reason="length"), Answer("42"))
    (1.0, None)
    """
    if not draft.finished or not expert.finished or not (expert.text.strip() or expert.tool_calls):
        return None
    return ToolCallLoss(text=AnswerLoss(truth=truth))(draft, expert)


@dataclass(frozen=True, slots=True)
class ByTask:
    """A different loss for each kind of task.

    Parameters
    ----------
    losses: the loss for each kind of task, by name.
    otherwise: the loss for all other tasks (default: none, and such a task is an error).

    >>> by_task = ByTask({"tools": ToolCallLoss(), "maths": AnswerLoss(str.__eq__)})
    >>> by_task.of("maths")(Answer("41"), Answer("42"))
    1.0
    """

    losses: Mapping[str, Loss] = field(default_factory=dict)
    otherwise: Loss | None = None

    def __post_init__(self) -> None:
        if not self.losses and self.otherwise is None:
            raise SettingsError("ByTask needs a loss for at least one task, or the argument otherwise")

    def of(self, task: str) -> Loss:
        """The loss for a kind of task."""
        loss = self.losses.get(task, self.otherwise)
        if loss is None:
            raise InputError(f"there is no loss for the task {task!r}; the tasks are {', '.join(sorted(self.losses))}")
        return loss


def _comparable_call(call: Mapping[str, Any]) -> tuple[str, Hashable]:
    function = call["function"]
    arguments, name = function.get("arguments"), function["name"]
    if not isinstance(name, str):
        raise TypeError("the name of a tool must be a string")
    if isinstance(arguments, str):
        # Some servers write the arguments of a function without parameters as an empty string.
        value = parse_comparable(arguments if arguments.strip() else "{}")
    elif isinstance(arguments, Mapping | None):
        value = comparable(arguments or {})
    else:
        raise TypeError("the arguments must be a JSON object")
    if not isinstance(value, tuple) or value[0] != "object":
        raise TypeError("the arguments must be a JSON object")
    return name, value
