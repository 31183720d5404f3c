"""All scores of a draft at once.

1. Every draft is scored by every model that bets, so nothing about learned scores is done more often.
2. Models that join share their features. For each feature the knots of all models are merged, and one search finds the
   stretches of all of them.
3. Features are checked on the way. What is not plainly a valid tuple of features is left to ``checked_features``, which
   takes longer, and knows what to say about mistakes.
4. The function is written out for the numbers of features and models, as Python's named tuples are: loops over them
   would take twice as long for three models. Its text follows from these numbers alone; what the models contain is
   passed to it as values.
5. Each score is what its model computes alone, to the same bits.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import exp
from types import CodeType
from typing import Any

from bpac.routing.learning.features import LARGEST, LEAST, LONGEST_WORD
from bpac.routing.learning.model import (
    MOST_LOG_ODDS,
    PARTS,
    RETIRED,
    WHOLE,
    Compiled,
    FrozenModel,
    OwnScore,
    RetiredScore,
    compiled,
    predicted_loss,
)

# What stands in the function's text for a score that is none of a model.
FIXED = {OwnScore: "value_0", RetiredScore: repr(RETIRED)}
# From the score that was there first and the features of a draft to all its scores; none if the features need a closer
# look.
Scorer = Callable[[float, Any], tuple[float, ...] | None]


def scorer(models: Sequence[FrozenModel | OwnScore | RetiredScore], features: int) -> Scorer:
    """A function that gives the score that was there first and those of all models.

    Parameters
    ----------
    models: those that have joined, or what stands in place of one.
    features: how many features a draft has beside its score, at least 1.

    >>> term = {"knots": [10.0, 30.0], "values": [-2.0, 2.0], "words": {}, "missing": 0.0}
    >>> model, other = (FrozenModel({"intercept": start, "terms": [term, term]}) for start in (0.0, 1.0))
    >>> scores = scorer([model, other], features=1)
    >>> scores(0.3, (20.0,)) == (0.3, model.score((0.3, 20.0)), other.score((0.3, 20.0)))
    True
    >>> scores(0.3, (float("nan"),)) is None
    True
    """
    fitted = [model.to_json() for model in models if isinstance(model, FrozenModel)]
    names: dict[str, Any] = {"bisect": bisect_right, "exp": exp, "predicted_loss": predicted_loss}
    names |= {"PARTS": PARTS, "WHOLE": WHOLE, "MOST": MOST_LOG_ODDS, "LEAST": LEAST, "LARGEST": LARGEST}
    names |= {f"intercept_{i}": data["intercept"] for i, data in enumerate(fitted)}
    used = []
    for index, terms in enumerate(zip(*(data["terms"] for data in fitted), strict=True)):
        if any(any(term.values()) for term in terms):
            used.append(index)
            names |= _values(index, [compiled(index, term) for term in terms])
    fixed = tuple("" if isinstance(model, FrozenModel) else FIXED[type(model)] for model in models)
    exec(_code(features, tuple(used), fixed), names)
    scores: Scorer = names["scores"]
    return scores


def _values(index: int, terms: Sequence[Compiled]) -> dict[str, Any]:
    """What the function uses for one feature, from the term of each model."""
    knots = sorted({knot for _, own, *_ in terms for knot in own})
    # The stretch below the lowest knot is the first of each; at a knot, the one that begins there or earlier.
    found = [[stretches[0], *(stretches[bisect_right(own, knot)] for knot in knots)] for _, own, stretches, *_ in terms]
    stretches = [tuple(part for one in same for part in one) for same in zip(*found, strict=True)]
    names: dict[str, Any] = {f"knots_{index}": knots, f"stretches_{index}": stretches}
    for i, (*_, words, missing) in enumerate(terms):
        names |= {f"word_{index}_{i}": words.get, f"missing_{index}_{i}": missing}
    return names


@lru_cache(maxsize=64)
def _code(features: int, used: tuple[int, ...], fixed: tuple[str, ...]) -> CodeType:
    """The function's code.

    Parameters
    ----------
    features: how many features a draft has beside its score.
    used: those that have a term in any model, counted from 1; 0 is the score.
    fixed: what stands in place of each score; empty for a model.
    """
    models = range(fixed.count(""))
    values = [f"value_{index}" for index in range(features + 1)]
    parts = ", ".join(f"at_{i}, slope_{i}, knot_{i}" for i in models)
    lines = [
        "def scores(value_0, known):",
        f"    if known.__class__ is not tuple or len(known) != {features}: return None",
        f"    {', '.join(values[1:])}, = known",
        *[f"    odds_{i} = intercept_{i}" for i in models],
    ]
    for index, value in enumerate(values):
        number = missing = word = ["pass"]
        if index in used:
            number = [
                f"{parts} = stretches_{index}[bisect(knots_{index}, {value})]",
                *[f"odds_{i} += at_{i} + slope_{i} * ({value} - knot_{i})" for i in models],
            ]
            missing = [f"odds_{i} += missing_{index}_{i}" for i in models]
            word = [f"odds_{i} += word_{index}_{i}({value}, 0.0)" for i in models]
        if index == 0:  # the score, which is a number and was checked before
            lines += [f"    {line}" for line in number]
            continue
        lines += [
            f"    if {value}.__class__ is float:",
            f"        if not LEAST <= {value} <= LARGEST: return None",
            *[f"        {line}" for line in number],
            f"    elif {value} is None:",
            *[f"        {line}" for line in missing],
            f"    elif {value}.__class__ is str and len({value}) <= {LONGEST_WORD} and {value}.isascii():",
            *[f"        {line}" for line in word],
            "    else: return None",
        ]
    usual = iter([f"((PARTS / (1.0 + exp(-odds_{i})) + WHOLE) - WHOLE) / PARTS" for i in models])
    extreme = iter([f"predicted_loss(odds_{i})" for i in models])
    if models:
        lines += [
            f"    if {' and '.join(f'-MOST < odds_{i} < MOST' for i in models)}:",
            f"        return {', '.join(['value_0', *(one or next(usual) for one in fixed)])}",
        ]
    lines += [f"    return {', '.join(['value_0', *(one or next(extreme) for one in fixed)])},"]
    return compile("\n".join(lines), "<learned scores>", "exec")
