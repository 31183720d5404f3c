"""The state of a game in one word, for monitoring."""

from typing import Literal

from bpac.dashboard.history.history import History
from bpac.routing.policies import Fixed, Offline
from bpac.routing.router import Router
from bpac.routing.summary import Summary

State = Literal["warming_up", "routing", "not_routing", "alarmed"]


def state_of(router: Router, history: History, summary: Summary) -> State:
    """Whether a game routes: ``not_routing`` and ``alarmed`` need an operator, ``warming_up`` needs time.

    Parameters
    ----------
    router, history: the router and the history of the game.
    summary: the result of ``router.summary()``.

    >>> router = Router(epsilon=0.05)
    >>> state_of(router, History(), router.summary())
    'warming_up'
    """
    policy, closed = router.settings.policy, summary.threshold == 0.0
    never_opens = isinstance(policy, Fixed) or (isinstance(policy, Offline) and summary.steps >= policy.size)
    if history.unscored.only(summary.steps) or (closed and never_opens):
        return "not_routing"
    alarm = policy.alarm
    if alarm is not None:
        loud = max(summary.alarm or 0.0, summary.doubt or 0.0) >= alarm.careful_at
        if loud or (closed and summary.epoch > 1):
            return "alarmed"
    return "warming_up" if closed else "routing"
