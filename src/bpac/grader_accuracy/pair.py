"""Pairs of answers that are known to be the same, or known to be different."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two answers to one question.

    Parameters
    ----------
    kind: what the answers are: ``numbers``, ``names``, ``code`` …
    draft, expert: what the two models said.
    same: whether they give the same answer.
    """

    kind: str
    draft: str
    expert: str
    same: bool


@dataclass(frozen=True, slots=True)
class Meant:
    """An answer before it is put into words.

    Parameters
    ----------
    answer: the answer.
    same: ways to write the same answer; the answer itself is always one.
    different: other answers, as near to it as they come.
    mathematics: whether it is a formula, which may stand in a box as it is.
    whole: whether it is all that is said, with no words around it that mark it as the answer.
    """

    answer: str
    same: tuple[str, ...]
    different: tuple[str, ...]
    mathematics: bool = False
    whole: bool = False


# Draws an answer of one kind.
Draw = Callable[[random.Random], Meant]


def swapped(value: Any, draw: random.Random, choices: tuple[Any, ...]) -> Any:
    """Another one of the choices.

    >>> swapped(1, random.Random(0), (1, 2))
    2
    """
    return draw.choice([choice for choice in choices if choice != value])
