"""Drift: the alarm, and the doubt that audits without a verdict cause (MATH section 3)."""

from typing import Any

from bpac.betting.drift.alarm import AlarmSettings, DriftAlarm
from bpac.betting.ledgers.ledger import Round
from bpac.betting.payoff import Terms


class Drift:
    """Watches the threshold in force.

    1. The *alarm* follows outcomes that are known. An audit that was given up does not raise it: an outage or a restart
       is not drift, and must not make the router forget what it has learned.
    2. Drift could hide behind audits that are given up. So a second alarm, the *doubt*, counts them as losses. It never
       makes the router forget anything. It raises the exploration rate, and, at the level at which the alarm would
       reset, to 1: every draft is audited until there are verdicts again. Then nothing unaudited is served, and the
       alarm sees what was hidden.

    Parameters
    ----------
    terms: the terms of the bets.
    settings: the settings of both alarms.
    """

    __slots__ = ("_settings", "_terms", "alarm", "careful_rate", "doubt", "raised")

    def __init__(self, terms: Terms, settings: AlarmSettings) -> None:
        self._terms = terms
        self._settings = settings
        self.alarm = DriftAlarm(terms, settings)
        self.doubt: DriftAlarm | None = None  # none while it would be at the same level as the alarm
        self.careful_rate = 0.0  # the exploration rate that the alarms ask for; 0 while both are low
        self.raised = False  # whether either alarm is raised; if not, a round without a loss is only counted

    @property
    def rings(self) -> bool:
        """Whether the wealth should be forgotten."""
        return self.alarm.rings

    @property
    def doubts(self) -> float:
        """The level of the doubt; 1 while there is none."""
        return self.doubt.level if self.doubt is not None else 1.0

    def fade(self, least_propensity: float) -> None:
        """Count a round without a loss at the threshold in force."""
        self.alarm.fade(least_propensity)
        if not self.raised:
            return
        if self.doubt is not None:
            self.doubt.fade(least_propensity)
        self._update()

    def known(self, decision: Round, loss: float, *, given_up: bool = False) -> None:
        """Count an audit whose outcome is known.

        Parameters
        ----------
        decision, loss: the audit and its loss.
        given_up: whether it was given up before: the doubt has counted it already.
        """
        self.alarm.known(decision, loss)
        if self.doubt is not None and not given_up:
            self.doubt.known(decision, loss)
        self._update()

    def given_up(self, decision: Round) -> None:
        """Count an audit whose outcome will not be known."""
        if decision.uncertainty >= decision.threshold:
            return  # its draft was not accepted: it says nothing about the threshold
        if self.doubt is None:
            self.doubt = DriftAlarm(self._terms, self._settings)
            self.doubt.load(self.alarm.state())
        self.doubt.known(decision, 1.0)
        self._update()

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {"alarm": self.alarm.state(), "doubt": self.doubt.state() if self.doubt is not None else None}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.alarm.load(state["alarm"])
        if state["doubt"] is not None:
            self.doubt = DriftAlarm(self._terms, self._settings)
            self.doubt.load(state["doubt"])
        self._update()

    def _update(self) -> None:
        rate, doubt = self.alarm.careful_rate, self.doubt
        if doubt is not None:
            if doubt.rings:
                # No higher, so that it fades soon after there are verdicts again.
                doubt.hold_at(self._settings.reset_at)
                rate = 1.0
            elif doubt.level <= max(self.alarm.level, 1.0):
                self.doubt = None
            else:
                rate = max(rate, doubt.careful_rate)
        self.careful_rate = rate
        self.raised = rate > 0.0 or self.doubt is not None
