"""A frozen model: the predicted loss of a draft, from its score and its features."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp
from typing import Any

from bpac.errors import InputError
from bpac.routing.learning.features import LARGEST, LONGEST_WORD, Feature

# A learned score is a whole number of these parts: nine decimal places, without the cost of ``round``. Two machines may
# compute different last digits; a journal records the score.
PARTS = 1e9
# Adding this and taking it off again rounds to a whole number: no float of that size has decimals.
WHOLE = 2.0**52 + 2.0**51
# What is recorded in place of a score that bets no more.
RETIRED = 1.0
# Beyond this the predicted loss is 0 or 1 to all places.
MOST_LOG_ODDS = 40.0


class FrozenModel:
    """The predicted loss: the log-odds are a sum with one term for each feature.

    The term of a number is interpolated between *knots*, and beyond the outermost ones it is constant; that of a word
    is looked up, and 0 for words that are not known. A feature that is missing has a term, too. So any value of any
    feature gives a score, and none gives more than its table contains.

    Parameters
    ----------
    data: ``intercept`` and ``terms``, as ``to_json`` returns them.

    >>> term = {"knots": [10.0, 30.0], "values": [-2.0, 2.0], "words": {}, "missing": 0.0}
    >>> model = FrozenModel({"intercept": 0.0, "terms": [term]})
    >>> model.score((20.0,)), model.score((1e9,)) == model.score((30.0,))
    (0.5, True)
    """

    __slots__ = ("_data", "_intercept", "_terms", "features")

    def __init__(self, data: object) -> None:
        self._data = _checked(data)
        self._intercept: float = self._data["intercept"]
        self.features = len(self._data["terms"])
        self._terms = [compiled(index, term) for index, term in enumerate(self._data["terms"]) if any(term.values())]

    def to_json(self) -> dict[str, Any]:
        """The model as JSON values."""
        return self._data

    def score(self, features: Sequence[Feature]) -> float:
        """The predicted loss, in [0, 1].

        Parameters
        ----------
        features: one for each term.
        """
        log_odds = self._intercept
        for index, knots, stretches, words, missing in self._terms:
            value: Any = features[index]
            if value.__class__ is float:
                at_knot, slope, knot = stretches[bisect_right(knots, value)]
                log_odds += at_knot + slope * (value - knot)
            elif value is None:
                log_odds += missing
            else:
                log_odds += words.get(value, 0.0)
        return predicted_loss(log_odds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenModel) and other._data == self._data

    __hash__ = None  # type: ignore[assignment]  # its data could be changed


def predicted_loss(log_odds: float) -> float:
    """The predicted loss for a sum of terms."""
    if -MOST_LOG_ODDS < log_odds < MOST_LOG_ODDS:
        return ((PARTS / (1.0 + exp(-log_odds)) + WHOLE) - WHOLE) / PARTS
    return 1.0 if log_odds > 0.0 else 0.0


class OwnScore:
    """What stands in place of a model that would not be worth its share of α: the score that was there first."""

    def to_json(self) -> None:
        """It has no data."""

    def score(self, features: Sequence[Feature]) -> Any:
        """The score that was there first, which is the first feature."""
        return features[0]


class RetiredScore:
    """What stands in place of a model that bets no more: 1, which no threshold accepts."""

    def score(self, features: Sequence[Feature]) -> float:
        """The same for every draft."""
        return RETIRED


def frozen(data: object) -> FrozenModel | OwnScore:
    """The model that was written with ``to_json``."""
    return OwnScore() if data is None else FrozenModel(data)


# Index of the feature; its knots; value, slope and first knot of each stretch; terms of words, and if it is missing.
Compiled = tuple[int, list[float], list[tuple[float, float, float]], dict[str, float], float]


def compiled(index: int, term: Mapping[str, Any]) -> Compiled:
    """A term with the stretches between its knots, those beyond the outermost included."""
    knots, at_knots = term["knots"] or [0.0], term["values"] or [0.0]
    stretches = [(at_knots[0], 0.0, knots[0])]
    for i, value in enumerate(at_knots):
        slope = (at_knots[i + 1] - value) / (knots[i + 1] - knots[i]) if i + 1 < len(knots) else 0.0
        # Two knots may be closer than a float can divide by.
        stretches.append((value, slope if abs(slope) <= LARGEST else 0.0, knots[i]))
    return index, knots, stretches, term["words"], term["missing"]


def _checked(data: object) -> dict[str, Any]:
    """The data of a model, or ``InputError`` if it is none."""
    try:
        terms = [_checked_term(term) for term in data["terms"]]  # type: ignore[index]
        model = {"intercept": _number(data["intercept"]), "terms": terms}  # type: ignore[index]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"this is not a learned score: {error}") from error
    if model != data:
        raise InputError("this is not a learned score: it has unknown keys")
    return model


def _checked_term(term: Any) -> dict[str, Any]:
    knots, values = [_number(knot) for knot in term["knots"]], [_number(value) for value in term["values"]]
    words = {word: _number(value) for word, value in term["words"].items()}
    if len(knots) != len(values) or any(b <= a for a, b in pairwise(knots)):
        raise ValueError("each term needs increasing knots, and a value for each")
    if not all(isinstance(word, str) and len(word) <= LONGEST_WORD for word in words):
        raise ValueError("words must be short strings")
    return {"knots": knots, "values": values, "words": words, "missing": _number(term["missing"])}


def _number(value: Any) -> float:
    if type(value) not in (float, int) or not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)
