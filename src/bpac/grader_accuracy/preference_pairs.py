"""Open-ended questions with a clearly better and a clearly worse answer, to measure judges with."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """A question and two answers, of which everybody would prefer the first.

    Parameters
    ----------
    fault: what is wrong with the worse answer: ``off topic``, ``wrong fact``, ``rude`` …
    question: what the user asked.
    better, worse: the two answers.
    """

    fault: str
    question: str
    better: str
    worse: str


@cache
def preference_pairs() -> tuple[PreferencePair, ...]:
    """The built-in pairs, one of every fault in turn, so that the first pairs are a fair selection of all.

    In every ten of them, the worse answer is the longer one five times: a judge that goes by length is right by chance.

    >>> pairs = preference_pairs()
    >>> len(pairs), pairs[0].fault, pairs[1].fault
    (40, 'off topic', 'wrong fact')
    """
    by_fault = json.loads((files(__package__) / "preference_pairs.json").read_text(encoding="utf-8"))
    rows = zip(*([PreferencePair(fault, **pair) for pair in pairs] for fault, pairs in by_fault.items()), strict=True)
    return tuple(pair for row in rows for pair in row)
