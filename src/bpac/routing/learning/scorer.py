"""All scores of a draft at once.

1. Every draft is scored by every model that has joined, so nothing about learned scores is done more often.
2. Models that join share their features. For each feature the knots of all models are merged, and one search finds the
   stretches of all of them.
3. The function is written out for the numbers of features and models, as Python's named tuples are: loops over them
   would take twice as long for three models. Its text follows from these numbers alone; what the models contain is
   passed to it as values.
4. Each score is what its model computes alone, to the same bits.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import exp
from types import CodeType
from typing import Any

from bpac.routing.learning.features import Feature
from bpac.routing.learning.model import (
    MOST_LOG_ODDS,
    PARTS,
    WHOLE,
    Compiled,
    FrozenModel,
    OwnScore,
    compiled,
    predicted_loss,
)

# From the score that was there first and the features of a draft to all its scores.
Scorer = Callable[[Sequence[Feature]], tuple[float, ...]]


def first_score(known: Sequence[Any]) -> tuple[float, ...]:
    """The only score while no model has joined."""
    return (known[0],)


def scorer(models: Sequence[FrozenModel | OwnScore]) -> Scorer:
    """A function that gives the score that was there first and those of all models.

    Parameters
    ----------
    models: one or more, of the same features, or the score that was there first in place of one.

    >>> term = {"knots": [10.0, 30.0], "values": [-2.0, 2.0], "words": {}, "missing": 0.0}
    >>> model, other = (FrozenModel({"intercept": start, "terms": [term]}) for start in (0.0, 1.0))
    >>> scorer([model, other])((20.0,)) == (20.0, model.score((20.0,)), other.score((20.0,)))
    True
    """
    fitted = [model.to_json() for model in models if isinstance(model, FrozenModel)]
    if not fitted:
        return lambda known: (known[0],) * (1 + len(models))  # type: ignore[return-value]  # always a number
    names: dict[str, Any] = {"bisect": bisect_right, "exp": exp, "predicted_loss": predicted_loss}
    names |= {"PARTS": PARTS, "WHOLE": WHOLE, "MOST": MOST_LOG_ODDS}
    names |= {f"intercept_{i}": data["intercept"] for i, data in enumerate(fitted)}
    used = []
    for index, terms in enumerate(zip(*(data["terms"] for data in fitted), strict=True)):
        if any(any(term.values()) for term in terms):
            used.append(index)
            names |= _values(index, [compiled(index, term) for term in terms])
    own = tuple(isinstance(model, OwnScore) for model in models)
    exec(_code(len(fitted[0]["terms"]), tuple(used), own), names)
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
def _code(features: int, used: tuple[int, ...], own: tuple[bool, ...]) -> CodeType:
    """The function's code.

    Parameters
    ----------
    features: how many values a draft has, the score that was there first included.
    used: those that have a term in any model.
    own: whether the score that was there first stands in place of each model.
    """
    models = range(own.count(False))
    lines = ["def scores(known):", f"    {''.join(f'value_{index}, ' for index in range(features))}= known"]
    lines += [f"    odds_{i} = intercept_{i}" for i in models]
    parts = ", ".join(f"at_{i}, slope_{i}, knot_{i}" for i in models)
    for index in used:
        value = f"value_{index}"
        lines += [
            f"    if {value}.__class__ is float:",
            f"        {parts} = stretches_{index}[bisect(knots_{index}, {value})]",
            *[f"        odds_{i} += at_{i} + slope_{i} * ({value} - knot_{i})" for i in models],
            f"    elif {value} is None:",
            *[f"        odds_{i} += missing_{index}_{i}" for i in models],
            "    else:",
            *[f"        odds_{i} += word_{index}_{i}({value}, 0.0)" for i in models],
        ]
    usual = iter([f"((PARTS / (1.0 + exp(-odds_{i})) + WHOLE) - WHOLE) / PARTS" for i in models])
    extreme = iter([f"predicted_loss(odds_{i})" for i in models])
    lines += [
        f"    if {' and '.join(f'-MOST < odds_{i} < MOST' for i in models)}:",
        f"        return {', '.join(['value_0', *('value_0' if one else next(usual) for one in own)])}",
        f"    return {', '.join(['value_0', *('value_0' if one else next(extreme) for one in own)])}",
    ]
    return compile("\n".join(lines), "<learned scores>", "exec")
