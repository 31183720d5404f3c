"""Drafts that take time: how many are in flight at once, and how long each takes."""

import math
from dataclasses import dataclass

import numpy as np

from bpac.arguments import whole
from bpac.errors import InputError

DRAFT_TIMES = "none, independent:MEAN or losses:FACTOR"


@dataclass(frozen=True, slots=True)
class Drafting:
    """A closed loop of queries: when a draft ends, the next query arrives.

    Parameters
    ----------
    in_flight: number of drafts in flight at once.
    fixed: time that every draft takes.
    mean: mean of a random time that is added to it.
    loss_factor: drafts with a loss take this many times as long.
    tickets: whether queries are counted in the order of arrival; if not, in the order in which their drafts end.
    hung: number of the query whose draft never ends; 0 for none.
    deadline: time after which a draft is overdue.
    """

    in_flight: int = 1
    fixed: float = 1.0
    mean: float = 0.0
    loss_factor: float = 1.0
    tickets: bool = True
    hung: int = 0
    deadline: float = math.inf

    def __post_init__(self) -> None:
        whole(self.in_flight, "in-flight", 1)

    @classmethod
    def parse(cls, text: str, in_flight: int = 1, *, tickets: bool = True) -> "Drafting":
        """Read a draft time: ``none``, ``independent:MEAN`` or ``losses:FACTOR``.

        Only ratios of times matter, because the next query arrives when a draft ends. ``none``: all drafts take equally
        long. ``independent:MEAN``: each takes 1 plus an exponential time with that mean, independent of its loss.
        ``losses:FACTOR``: each takes an exponential time, which is FACTOR times as long for drafts with a loss.

        >>> Drafting.parse("losses:3", in_flight=64)
        Drafting(in_flight=64, fixed=0.0, mean=1.0, loss_factor=3.0, tickets=True, hung=0, deadline=inf)
        """
        kind, colon, amount = text.partition(":")
        defaults = {"none": 0.0, "independent": 1.0, "losses": 3.0}
        try:
            value = float(amount) if colon else defaults[kind]
            least = 1e-6 if kind == "losses" else 0.0
            if kind not in defaults or not least <= value <= 1e6 or (kind == "none" and colon):
                raise ValueError
        except (KeyError, ValueError):
            raise InputError(f"draft time {text!r} is none of: {DRAFT_TIMES}") from None
        if kind == "losses":
            return cls(in_flight, 0.0, 1.0, value, tickets)
        return cls(in_flight, 1.0, value, 1.0, tickets)

    def draw(self, query: int, loss: float, rng: np.random.Generator) -> float:
        """The time that the draft of a query takes."""
        if query == self.hung:
            return math.inf
        time = self.fixed + (float(rng.exponential(self.mean)) if self.mean else 0.0)
        return time * self.loss_factor if loss > 0.0 else time
