"""The drift alarm (MATH section 3): detects that a certified threshold has become unsafe."""

import math
from dataclasses import dataclass
from typing import Any

from bpac.arguments import keep, open_fraction, positive, some
from bpac.betting.ledgers.ledger import Round
from bpac.betting.payoff import Terms
from bpac.errors import SettingsError


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """When the alarm makes the router audit more, and when it makes it forget its wealth and start again.

    Parameters
    ----------
    careful_at: level from which exploration rises to ``careful_rate``.
    careful_rate: exploration rate while the alarm is at that level or above.
    reset_at: level at which the wealth is forgotten.
    stakes: stakes of the gamblers who bet on drift (φ).
    """

    careful_at: float = 5.0
    careful_rate: float = 0.5
    reset_at: float = 10_000.0
    stakes: tuple[float, ...] = (0.4, 1.0, 2.0)

    def __post_init__(self) -> None:
        keep(
            self,
            careful_at=positive(self.careful_at, "careful_at"),
            careful_rate=open_fraction(self.careful_rate, "careful_rate"),
            reset_at=positive(self.reset_at, "reset_at"),
            stakes=some(self.stakes, "stakes", "stake", positive),
        )
        if not 1.0 < self.careful_at <= self.reset_at:
            raise SettingsError("the alarm needs 1 < careful_at ≤ reset_at")


class DriftAlarm:
    """The mean wealth of a few gamblers who bet that the threshold in force is *not* safe.

    Each gambler is topped up to 1 before every round, so that an easy past buys no patience.
    The alarm can only make the router more careful, so the order of its updates does not matter
    to the promise. Rounds without a loss only let it fade, and are only counted until its level is needed.
    """

    __slots__ = (
        "_bets",
        "_fades",
        "_gamblers",
        "_settings",
        "_terms",
        "careful_rate",
        "least_propensity",
        "quiet",
        "rings",
    )

    def __init__(self, terms: Terms, settings: AlarmSettings) -> None:
        self._terms = terms
        self._settings = settings
        self._gamblers = [1.0] * len(settings.stakes)
        self.quiet = 0
        self._set_bets(1.0)
        self.careful_rate = 0.0  # the exploration rate the alarm asks for; 0 while it is quiet
        self.rings = False  # whether it has reached the level at which the wealth is forgotten

    @property
    def level(self) -> float:
        """The level of the alarm: the mean wealth of its gamblers."""
        return sum(self._faded()) / len(self._gamblers)

    def fade(self, least_propensity: float) -> None:
        """Count a round without a loss at the threshold in force."""
        if least_propensity != self.least_propensity:
            self._collect(least_propensity)
        self.quiet += 1
        if self.careful_rate:
            self._update()

    def known(self, decision: Round, loss: float) -> None:
        """Count an audit with its loss."""
        if loss == 0.0 or decision.uncertainty >= decision.threshold:
            self.fade(decision.least_propensity)
            return
        self._collect(decision.least_propensity)
        excess = -self._terms.payoff(loss, decision.propensity)
        pairs = zip(self._gamblers, self._bets, strict=True)
        self._gamblers = [max(wealth, 1.0) * (1.0 + bet * excess) for wealth, bet in pairs]
        self._update()

    def hold_at(self, level: float) -> None:
        """Lower the alarm to this level, if it is above it, by scaling all gamblers alike."""
        if self.level <= level * (1.0 + 1e-9):
            return  # a state that is loaded stays as it was, to the bit
        self._gamblers = self._faded()
        self.quiet = 0
        scale = level / self.level
        self._gamblers = [wealth * scale for wealth in self._gamblers]
        while self.level < level:  # by rounding
            self._gamblers = [math.nextafter(wealth, math.inf) for wealth in self._gamblers]

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"gamblers": self._gamblers, "quiet": self.quiet, "least_propensity": self.least_propensity}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._gamblers, self.quiet = list(state["gamblers"]), state["quiet"]
        self._set_bets(state["least_propensity"])
        self._update()

    def _update(self) -> None:
        level = self.level
        self.careful_rate = self._settings.careful_rate if level >= self._settings.careful_at else 0.0
        self.rings = level >= self._settings.reset_at

    def _collect(self, least_propensity: float) -> None:
        """Let the gamblers fade for the rounds counted so far, and bet on the next ones."""
        self._gamblers = self._faded()
        self.quiet = 0
        self._set_bets(least_propensity)

    def _set_bets(self, least_propensity: float) -> None:
        self.least_propensity = least_propensity
        most = 0.9 / self._terms.epsilon
        self._bets = [min(stake * least_propensity, most) for stake in self._settings.stakes]
        self._fades = [1.0 - bet * self._terms.epsilon for bet in self._bets]

    def _faded(self) -> list[float]:
        """The gamblers after the quiet rounds: topped up at the first, and from below 1 at any later one."""
        rounds = self.quiet
        if not rounds:
            return self._gamblers
        before_last = [max(w, 1.0) * fade ** (rounds - 1) for w, fade in zip(self._gamblers, self._fades, strict=True)]
        return [max(wealth, 1.0) * fade for wealth, fade in zip(before_last, self._fades, strict=True)]
