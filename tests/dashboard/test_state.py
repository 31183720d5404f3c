"""The state of a game in one word."""

from typing import Any

import pytest

from bpac.dashboard.history.history import History
from bpac.dashboard.history.unscored import CALLER_LEFT, MANY
from bpac.dashboard.state import state_of
from bpac.routing.policies import Offline
from bpac.routing.router import Router
from tests.dashboard.played import feed


def state(router: Router, history: History) -> str:
    """The state now."""
    return state_of(router, history, router.summary())


def test_from_the_first_request_to_a_drift() -> None:
    """Warming up, routing, then alarmed until a threshold is certified again."""
    router, history = Router(0.1, seed=1), History()
    assert state(router, history) == "warming_up"
    feed(router, history, [(0.5, 0.0)] * 300)
    assert state(router, history) == "routing"
    states = []
    while router.epoch == 1:
        feed(router, history, [(0.5, 1.0)])
        states.append(state(router, history))
    assert states[-1] == "alarmed"
    feed(router, history, [(0.5, 0.0)] * 2000)
    assert (router.epoch, state(router, history)) == (2, "routing")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"policy": "always"}, "not_routing"),
        ({"policy": "never"}, "routing"),
        ({"policy": Offline(size=10)}, "not_routing"),
        ({"policy": Offline(size=30)}, "warming_up"),
    ],
)
def test_policies_that_never_keep_a_draft(options: Any, expected: str) -> None:
    """Without a threshold, and without one to come, nothing is routed."""
    router, history = Router(0.1, seed=1, **options), History()
    feed(router, history, [(0.5, 1.0)] * 20)
    assert state(router, history) == expected


def test_requests_without_a_score_at_present() -> None:
    """All so far, or many in a row; disconnected callers do not count, and one score ends it."""
    router, history = Router(0.1, seed=1), History()
    history.unscored.withdrawn(CALLER_LEFT)
    assert state(router, history) == "warming_up"
    history.unscored.withdrawn("n")
    assert state(router, history) == "not_routing"
    feed(router, history, [(0.5, 0.0)])
    for _ in range(MANY - 1):
        history.unscored.withdrawn("no-score")
    assert state(router, history) == "warming_up"
    history.unscored.withdrawn("no-score")
    assert state(router, history) == "not_routing"
