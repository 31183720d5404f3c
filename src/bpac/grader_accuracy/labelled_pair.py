"""Pairs of answers with a label: known to be the same, or known to be different."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two answers to one question, and whether they are the same.

    Parameters
    ----------
    kind: the kind of answer: ``numbers``, ``names``, ``code`` …
    draft, expert: the texts of the two models.
    same: whether both give the same answer.
    """

    kind: str
    draft: str
    expert: str
    same: bool


@dataclass(frozen=True, slots=True)
class AnswerVariants:
    """An answer, other ways to write it, and different answers that look similar.

    Parameters
    ----------
    answer: the answer.
    same: ways to write the same answer, including the answer itself.
    different: other answers that are as similar to it as possible.
    mathematics: whether it is a formula, which can be put into a box without changes.
    whole: whether the answer is the complete text, without words around it that mark it as the answer.
    """

    answer: str
    same: tuple[str, ...]
    different: tuple[str, ...]
    mathematics: bool = False
    whole: bool = False


# Generates an answer of one kind and its variants from a random source.
VariantsGenerator = Callable[[random.Random], AnswerVariants]


def another_choice(value: Any, rng: random.Random, choices: tuple[Any, ...]) -> Any:
    """A random choice other than the given value.

    >>> another_choice(1, random.Random(0), (1, 2))
    2
    """
    return rng.choice([choice for choice in choices if choice != value])
