"""Exploration: with which least probability the expert is called."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bpac.betting.ledger import Ledger, Round
from bpac.betting.levels import RelativeLevels
from bpac.betting.loss_table import LossTable
from bpac.betting.numbers import keep, open_fraction, positive, whole
from bpac.betting.payoff import Terms
from bpac.betting.weighted_losses import SUM_UNIT
from bpac.errors import SettingsError


class Rates(Protocol):
    """The exploration rate of each round of an epoch, from what is known before the round."""

    @property
    def steady_after(self) -> int | None:
        """The step of the epoch after which the rate stays at the floor; none if it may always change."""

    def rate(self, step: int) -> float:
        """Least probability of calling the expert in this step of the epoch (ρ)."""


class Exploration(Protocol):
    """A schedule: a value that starts afresh with every epoch."""

    @property
    def floor(self) -> float:
        """The least rate ever used (ρ_min)."""

    def start(self, terms: Terms) -> Rates:
        """The rates of a new epoch."""


@dataclass(frozen=True, slots=True)
class TwoStage:
    """The paper's schedule: explore much at first, then little.

    >>> [TwoStage().rate(step) for step in (1, 200, 201)]
    [0.7, 0.7, 0.05]
    """

    warmup_rate: float = 0.7
    deploy_rate: float = 0.05
    warmup_steps: int = 200

    def __post_init__(self) -> None:
        keep(self, warmup_rate=open_fraction(self.warmup_rate, "warmup_rate"))
        keep(self, deploy_rate=open_fraction(self.deploy_rate, "deploy_rate"))
        whole(self.warmup_steps, "warmup_steps", 0)
        if self.warmup_rate < self.deploy_rate:
            raise SettingsError(f"warmup_rate {self.warmup_rate} is below deploy_rate {self.deploy_rate}: swap them")

    @property
    def floor(self) -> float:
        """The least rate ever used."""
        return self.deploy_rate

    @property
    def steady_after(self) -> int:
        """The end of the warm-up."""
        return self.warmup_steps

    def start(self, terms: Terms) -> "TwoStage":
        """The schedule has no state."""
        return self

    def rate(self, step: int) -> float:
        """Least probability of calling the expert in this step of the epoch."""
        return self.warmup_rate if step <= self.warmup_steps else self.deploy_rate


@dataclass(frozen=True, slots=True)
class Constant:
    """The same rate in every round."""

    value: float = 0.05

    def __post_init__(self) -> None:
        keep(self, value=open_fraction(self.value, "value"))

    @property
    def floor(self) -> float:
        """The least rate ever used."""
        return self.value

    @property
    def steady_after(self) -> int:
        """From the start."""
        return 0

    def start(self, terms: Terms) -> "Constant":
        """The schedule has no state."""
        return self

    def rate(self, step: int) -> float:
        """Least probability of calling the expert in this step of the epoch."""
        return self.value


@dataclass(frozen=True, slots=True)
class NoExploration:
    """Methods with a fixed threshold call the expert above it and nowhere else: no promise, no certificate."""

    @property
    def floor(self) -> float:
        """The least rate ever used."""
        return 0.0

    @property
    def steady_after(self) -> int:
        """From the start."""
        return 0

    def start(self, terms: Terms) -> "NoExploration":
        """The schedule has no state."""
        return self

    def rate(self, step: int) -> float:
        """Least probability of calling the expert in this step of the epoch."""
        return 0.0


@dataclass(frozen=True, slots=True)
class GainDriven:
    """Explore while there is something to gain: ``clip(gain · (F(top) − F(û)) / F(û), floor, most)``.

    F is the share of traffic below a threshold, ``top`` the largest threshold that looks safe.

    Parameters
    ----------
    gain: how eagerly the rate follows what could be won.
    floor, most: the range of the rate.
    every: rounds between two looks.
    """

    gain: float = 0.3
    floor: float = 0.05
    most: float = 0.7
    every: int = 64

    def __post_init__(self) -> None:
        keep(self, gain=positive(self.gain, "gain"))
        keep(self, floor=open_fraction(self.floor, "floor"), most=open_fraction(self.most, "most"))
        whole(self.every, "every", 1)
        if self.most < self.floor:
            raise SettingsError(f"most {self.most} is below floor {self.floor}: swap them")

    def start(self, terms: Terms) -> "GainRates":
        """The rates of a new epoch."""
        return GainRates(self, terms)


class GainRates(Ledger):
    """The rates of ``GainDriven``: traffic and weighted losses by score level."""

    LEVELS = RelativeLevels()
    steady_after = None

    def __init__(self, settings: GainDriven, terms: Terms) -> None:
        self._settings = settings
        self._terms = terms
        self._table = LossTable(2, self.LEVELS.top)  # weighted losses, traffic
        self._rounds = 0
        self._rate = settings.most

    def rate(self, step: int) -> float:
        """Least probability of calling the expert in this step of the epoch."""
        return self._rate

    def decided(self, decision: Round) -> None:
        """Count the traffic, and look at the rate now and then."""
        self._table.add(self.LEVELS.code(decision.uncertainty), (0, 1))
        self._rounds += 1
        if self._rounds % self._settings.every == 0:
            self._look(decision.threshold)

    def add(self, decision: Round, loss: float) -> None:
        """Book a loss."""
        self._table.add(self.LEVELS.code(decision.uncertainty), (self._units(decision, loss), 0))

    def remove(self, decision: Round, loss: float) -> None:
        """Take a booked loss out again."""
        self._table.add(self.LEVELS.code(decision.uncertainty), (-self._units(decision, loss), 0))

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"rounds": self._rounds, "rate": self._rate, "table": self._table.rows()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._rounds, self._rate = state["rounds"], state["rate"]
        self._table.load(state["table"], 0)

    def _units(self, decision: Round, loss: float) -> int:
        return round(self._terms.weighted_loss(loss, decision.propensity) * SUM_UNIT)

    def _look(self, threshold: float) -> None:
        codes, sums = self._table.arrays()
        # Row i: all levels up to and including the i-th, which lie below the next one.
        losses, traffic = np.cumsum(sums, axis=0).T
        looks_safe = np.searchsorted(losses, self._terms.epsilon * self._rounds * SUM_UNIT, side="right")
        top = traffic[looks_safe - 1] if looks_safe else 0
        level = np.searchsorted(codes, self.LEVELS.code(threshold))
        current = traffic[level - 1] if level else 0
        settings = self._settings
        # Without any accepted traffic there is everything to gain.
        wanted = settings.gain * (int(top) - int(current)) / int(current) if current else settings.most
        self._rate = min(max(wanted, settings.floor), settings.most)
