"""Losses: what is lost when a draft is kept where the expert would have answered, as a number in [0, 1]."""

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

# More calls in one answer are not compared.
MOST_CALLS = 128
Equal = Callable[[str, str], Verdict]


class Loss(Protocol):
    """A way to tell what a draft loses against the expert's answer; ``None`` where that cannot be told."""

    def __call__(self, draft: Answer, expert: Answer) -> float | None:
        """The loss of the draft."""


def correctness_loss(draft_correct: bool, expert_correct: bool) -> float:
    """1 where the draft is wrong and the expert is right, else 0: an expert who is wrong too is no loss to miss.

    >>> correctness_loss(draft_correct=False, expert_correct=True)
    1.0
    """
    return float(expert_correct and not draft_correct)


@dataclass(frozen=True, slots=True)
class AnswerLoss:
    """0–1 loss of an answer, with the truth where it is known, else with the expert for the truth.

    A loss that depends on a comparison that cannot be made is not known (``None``), which a router counts as 1.

    Parameters
    ----------
    equal: whether two texts give the same answer, or ``None``; the truth, where known, comes second (default: the same
        final answer).
    truth: the right answer. With it, a draft loses only where it is wrong and the expert is right.

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
        right, expert_right = self.equal(draft.text, self.truth), self.equal(expert.text, self.truth)
        if right or expert_right is False:
            return 0.0
        return None if right is None or expert_right is None else correctness_loss(right, expert_right)


def mark_loss(draft_mark: float, expert_mark: float) -> float:
    """The loss of a draft by a judge's marks, 1 to 10: the root of how much better the expert's is, as a share.

    >>> mark_loss(7.0, 8.0)
    0.3333333333333333
    >>> mark_loss(9.0, 8.0)
    0.0
    """
    for mark in (draft_mark, expert_mark):
        if not LOWEST <= mark <= HIGHEST:
            raise InputError(f"a mark must lie in [{LOWEST:g}, {HIGHEST:g}], got {mark!r}: ask the judge again")
    return math.sqrt(max(0.0, expert_mark - draft_mark) / (HIGHEST - LOWEST))


def cosine_distance(draft: ArrayLike, expert: ArrayLike) -> float:
    """One minus the cosine of two embeddings, at most 1: opposite meanings lose no more than unrelated ones.

    >>> cosine_distance([1.0, 0.0], [1.0, 1.0]).__round__(6)
    0.292893
    """
    one, other = np.asarray(draft, dtype=np.float64), np.asarray(expert, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise InputError(f"embeddings must be two vectors of the same length, got shapes {one.shape}, {other.shape}")
    length = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    # Also false for NaN.
    if not 0.0 < length < math.inf:
        raise InputError("an embedding is zero or not finite: it has no direction to compare")
    return min(1.0, max(0.0, 1.0 - float(one @ other) / length))


@dataclass(frozen=True, slots=True)
class EmbeddingLoss:
    """Cosine distance between the embeddings of the two texts.

    Parameters
    ----------
    embed: turns a text into a vector.
    """

    embed: Callable[[str], ArrayLike]

    def __call__(self, draft: Answer, expert: Answer) -> float:
        """The loss of the draft."""
        return cosine_distance(self.embed(draft.text), self.embed(expert.text))


@dataclass(frozen=True, slots=True)
class ToolCallLoss:
    """0 where the draft wants the same calls made as the expert, else 1.

    Names and arguments are compared, identifiers are not. Arguments are compared as JSON values: spacing and the
    order of keys do not count, and 1 is 1.0 but neither ``true`` nor ``"1"``. A call that cannot be read, or that has
    one key twice, on either side, is a loss of 1. Where neither wants a call made, they agree, unless ``text`` sees a
    difference.

    Parameters
    ----------
    ordered: whether the order of the calls counts.
    text: the loss of two answers without calls.

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
            ours, theirs = ([_call(call) for call in answer.tool_calls] for answer in (draft, expert))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return 1.0
        return float(ours != theirs if self.ordered else Counter(ours) != Counter(theirs))


@dataclass(frozen=True, slots=True)
class ByTask:
    """A loss for every kind of task.

    Parameters
    ----------
    losses: the loss of each kind.
    otherwise: the loss of any other kind; without it, such a task is an error.

    >>> by_task = ByTask({"tools": ToolCallLoss(), "maths": AnswerLoss(str.__eq__)})
    >>> by_task.of("maths")(Answer("41"), Answer("42"))
    1.0
    """

    losses: Mapping[str, Loss] = field(default_factory=dict)
    otherwise: Loss | None = None

    def __post_init__(self) -> None:
        if not self.losses and self.otherwise is None:
            raise SettingsError("a loss by task needs the loss of at least one task")

    def of(self, task: str) -> Loss:
        """The loss of that kind of task."""
        loss = self.losses.get(task, self.otherwise)
        if loss is None:
            raise InputError(f"no loss for task {task!r}: there are {', '.join(sorted(self.losses))}")
        return loss


def _call(call: Mapping[str, Any]) -> tuple[str, Hashable]:
    function = call["function"]
    arguments, name = function.get("arguments"), function["name"]
    if not isinstance(name, str):
        raise TypeError("a tool's name is a text")
    if isinstance(arguments, str):
        # Servers write the arguments of a function without parameters as an empty text, too.
        value = parse_comparable(arguments if arguments.strip() else "{}")
    elif isinstance(arguments, Mapping | None):
        value = comparable(arguments or {})
    else:
        raise TypeError("arguments are an object")
    if not isinstance(value, tuple) or value[0] != "object":
        raise TypeError("arguments are an object")
    return name, value
