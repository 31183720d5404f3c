"""Schedules: the probability with which the expert is called for accepted drafts."""

from dataclasses import dataclass
from typing import Protocol

from bpac.arguments import keep, open_fraction, whole
from bpac.betting.payoff import Terms
from bpac.errors import SettingsError


class Rates(Protocol):
    """The exploration rate of each round of an epoch, from what is known before the round."""

    @property
    def steady_after(self) -> int:
        """The step of the epoch after which the rate no longer depends on the step."""

    def rate(self, step: int) -> float:
        """Least probability of calling the expert in this step of the epoch (ρ)."""


class Exploration(Protocol):
    """A schedule: a value that starts again with every epoch."""

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
    """The expert is called for drafts that are not accepted, and for no others: no promise, no certificate."""

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
