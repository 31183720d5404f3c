"""Schedules whose rate follows what there is to gain."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bpac.arguments import keep, of_kind, open_fraction, positive, whole
from bpac.betting.payoff import Terms
from bpac.errors import SettingsError
from bpac.routing.exploration.learned_rates import LONGEST_PAUSE, LearnedRates


@dataclass(frozen=True, slots=True)
class GainDriven:
    """Explore while there is something to gain: ``clip(eagerness · gain, floor, most)`` (MATH section 3).

    Parameters
    ----------
    eagerness: how fast the rate follows the gain.
    floor, most: the range of the rate.
    every: fewest rounds between two looks.
    """

    eagerness: float = 0.3
    floor: float = 0.05
    most: float = 0.7
    every: int = 64

    def __post_init__(self) -> None:
        _check(self)

    def start(self, terms: Terms) -> LearnedRates:
        """The rates of a new epoch."""
        return LearnedRates(self, terms)

    def wanted(self, gain: float, rounds: int, audits: float) -> float:
        """The rate to use until the next look."""
        return min(max(self.eagerness * gain, self.floor), self.most)

    def wanted_for(self, gain: float, rounds: int, audits: float) -> int:
        """Any number of rounds: the rate is in proportion to the gain, and a stale one does little harm."""
        return LONGEST_PAUSE


@dataclass(frozen=True, slots=True)
class WhileItPays:
    """Explore fully while another audit is worth its price, and at the floor afterwards.

    An audit costs the same early and late, and what it teaches is worth more early. So it is either worth making
    now or not at all. The gap between what looks safe and what is certified closes like
    ``1 / sqrt(audits)``: one more audit closes a share ``1 / (2 · audits)`` of it, for all rounds to come.
    As many are expected as there were in the whole game, and at least ``horizon``. So audits pay while
    ``audits < eagerness · max(rounds, horizon) · gain``.

    Parameters
    ----------
    eagerness: how much of the gain an audit may cost; about a half by the argument above, and
        less because part of the gap closes without audits.
    floor, most: the two rates.
    horizon: fewest rounds that are expected to come.
    every: fewest rounds between two looks.
    whole_game: whether the rounds before a drift alarm count for how many are expected, and not only those since.
    in_time: whether the rate is looked at again when the audits that pay have been made, and not only when the stream
        has grown by a quarter.
    """

    # What a journal says that was written before these settings existed.
    unwritten: ClassVar[Mapping[str, Any]] = {"whole_game": False, "in_time": False}

    eagerness: float = 0.25
    floor: float = 0.05
    most: float = 0.9
    horizon: int = 2000
    every: int = 64
    whole_game: bool = True
    in_time: bool = True

    def __post_init__(self) -> None:
        _check(self)
        whole(self.horizon, "horizon", 0, 1 << 53)
        of_kind(self.whole_game, "whole_game", (bool,))
        of_kind(self.in_time, "in_time", (bool,))

    def start(self, terms: Terms) -> LearnedRates:
        """The rates of a new epoch."""
        return LearnedRates(self, terms)

    def wanted(self, gain: float, rounds: int, audits: float) -> float:
        """The rate to use until the next look."""
        return self.most if audits < self._worth(gain, rounds) else self.floor

    def wanted_for(self, gain: float, rounds: int, audits: float) -> int:
        """Until the audits that pay have been made; where it is not known how many do, until the next chance."""
        missing = self._worth(gain, rounds) - audits
        if not self.in_time or not missing > 0.0:
            return LONGEST_PAUSE
        return math.ceil(min(missing / self.most, LONGEST_PAUSE)) if gain < math.inf else self.every

    def _worth(self, gain: float, rounds: int) -> float:
        """How many audits pay."""
        return self.eagerness * max(rounds, self.horizon) * gain


def _check(schedule: GainDriven | WhileItPays) -> None:
    keep(schedule, eagerness=positive(schedule.eagerness, "eagerness"))
    keep(schedule, floor=open_fraction(schedule.floor, "floor"), most=open_fraction(schedule.most, "most"))
    whole(schedule.every, "every", 1)
    if schedule.most < schedule.floor:
        raise SettingsError(f"most {schedule.most} is below floor {schedule.floor}: swap them")
