"""Drift: the alarm, and the doubt that audits without a verdict raise (MATH section 3)."""

from typing import Any

from bpac.betting.drift.alarm import AlarmSettings, DriftAlarm
from bpac.betting.ledgers.ledger import Round
from bpac.betting.payoff import Terms


class Drift:
    """Watches the threshold in force.

    The *alarm* follows outcomes that are known. An audit that was given up does not sound it: an outage or a restart is
    no drift, and must not make the router forget what it has learned. But a drift could hide behind audits that are
    given up, so a second gambler, the *doubt*, takes them for losses. It never makes the router forget anything. It
    makes it look harder, and, at the level at which the alarm would reset, audit every draft until verdicts come again:
    then nothing unaudited is served, and the alarm sees what was hidden.

    Parameters
    ----------
    terms: the terms of the bets.
    settings: of the alarm, and of the doubt.
    """

    __slots__ = ("_settings", "_terms", "alarm", "careful_rate", "doubt", "stirred")

    def __init__(self, terms: Terms, settings: AlarmSettings) -> None:
        self._terms = terms
        self._settings = settings
        self.alarm = DriftAlarm(terms, settings)
        self.doubt: DriftAlarm | None = None  # as long as it says the same as the alarm, there is none
        self.careful_rate = 0.0  # the exploration rate asked for; 0 while all is quiet
        self.stirred = False  # whether a round without loss needs more than to be counted

    @property
    def rings(self) -> bool:
        """Whether the wealth should be forgotten."""
        return self.alarm.rings

    @property
    def doubts(self) -> float:
        """How loud the doubt is; 1 while there is none."""
        return self.doubt.level if self.doubt is not None else 1.0

    def fade(self, least_propensity: float) -> None:
        """Take in a round that cost nothing at the threshold in force."""
        self.alarm.fade(least_propensity)
        if not self.stirred:
            return
        if self.doubt is not None:
            self.doubt.fade(least_propensity)
        self._listen()

    def known(self, decision: Round, loss: float, *, given_up: bool = False) -> None:
        """Take in an audit whose outcome is known.

        Parameters
        ----------
        decision, loss: the audit and its loss.
        given_up: whether it was given up before: the doubt has counted it already.
        """
        self.alarm.known(decision, loss)
        if self.doubt is not None and not given_up:
            self.doubt.known(decision, loss)
        self._listen()

    def given_up(self, decision: Round) -> None:
        """Take in an audit whose outcome will not be known."""
        if decision.uncertainty >= decision.threshold:
            return  # its draft was not accepted: it says nothing about the threshold
        if self.doubt is None:
            self.doubt = DriftAlarm(self._terms, self._settings)
            self.doubt.load(self.alarm.state())
        self.doubt.known(decision, 1.0)
        self._listen()

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"alarm": self.alarm.state(), "doubt": self.doubt.state() if self.doubt is not None else None}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.alarm.load(state["alarm"])
        if state["doubt"] is not None:
            self.doubt = DriftAlarm(self._terms, self._settings)
            self.doubt.load(state["doubt"])
        self._listen()

    def _listen(self) -> None:
        rate, doubt = self.alarm.careful_rate, self.doubt
        if doubt is not None:
            if doubt.rings:
                # No higher, so that it fades soon after verdicts come again.
                doubt.hold_at(self._settings.reset_at)
                rate = 1.0
            elif doubt.level <= max(self.alarm.level, 1.0):
                self.doubt = None
            else:
                rate = max(rate, doubt.careful_rate)
        self.careful_rate = rate
        self.stirred = rate > 0.0 or self.doubt is not None
