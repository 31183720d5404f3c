import itertools
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bpac import Router
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.ledgers.levels import EvenLevels, ListedLevels
from bpac.betting.wealth.thresholds import PriorThreshold
from bpac.routing.exploration.gain_schedules import GainDriven
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry, Resolved
from bpac.routing.policies import Budget, Hoeffding, Naive, Offline, Paper, Policy, Portfolio

NEVER_RINGS = AlarmSettings(reset_at=1e300)
POLICIES: dict[str, Policy] = {
    "alarmed": Portfolio(drift=NEVER_RINGS),
    "latched": Portfolio(memory="latched"),
    "revocable": Portfolio(memory="revocable"),
    "any stream": Portfolio(assume="any", levels=ListedLevels((0.3, 0.7))),
    "two scores": Portfolio(memory="revocable", scores={"a": 0.5, "b": 0.5}),
    "budget": Budget(first=2),
    "paper": Paper(grid=EvenLevels(11)),
    "paper with a prior": Paper(rule=PriorThreshold(), grid=EvenLevels(11)),
    "hoeffding": Hoeffding(grid=EvenLevels(11)),
    "naive": Naive(EvenLevels(11)),
    "offline": Offline(size=5),
}
# (score, loss or None for a forfeit)
Query = tuple[float, float | None]
queries = st.lists(
    st.tuples(st.sampled_from([0.0, 0.05, 0.1, 0.1, 0.35, 0.8, 1.0]), st.sampled_from([0.0, 0.0, 0.0, 0.3, 1.0, None])),
    min_size=5,
    max_size=40,
)


def play(policy: Policy, queries: list[Query], seed: int) -> list[Entry]:
    """The journal of a stream whose outcomes are all known at once."""
    entries: list[Entry] = []
    exploration = None if isinstance(policy, Offline) else Constant(0.4)
    router = Router(0.5, 0.6, policy, exploration=exploration, seed=seed, journal=entries.append)
    for score, loss in queries:
        scores: Any = {"a": score, "b": 1.0 - score} if policy.score_names else score
        decision = router.decide(scores)
        if decision.call_expert and loss is None:
            router.forfeit(decision)
        elif decision.call_expert:
            router.observe(decision, loss or 0.0)
    return entries


def state(entries: list[Entry]) -> dict[str, Any]:
    """All but the alarm, which depends on the order of outcomes, and the order in which rounds were given up."""
    full: dict[str, Any] = Router.rebuild(entries).snapshot()["state"]
    full["given_up"].sort()
    return {key: value for key, value in full.items() if key not in ("drift", "forfeit_share")}


def shuffled(entries: list[Entry], data: st.DataObject) -> list[Entry]:
    """All decisions, then all outcomes in a drawn order."""
    outcomes = [entry for entry in entries if isinstance(entry, Resolved)]
    return [entry for entry in entries if not isinstance(entry, Resolved)] + data.draw(st.permutations(outcomes))


def scattered(entries: list[Entry], data: st.DataObject) -> list[Entry]:
    """The same decisions, each outcome at a drawn place after its own."""
    decided = [entry for entry in entries if not isinstance(entry, Resolved)]
    places: list[list[Entry]] = [[] for _ in decided]
    for entry in entries:
        if isinstance(entry, Resolved):
            places[data.draw(st.integers(entry.step, len(decided) - 1))].append(entry)
    pairs = zip(decided, (data.draw(st.permutations(place)) for place in places), strict=True)
    return list(itertools.chain.from_iterable([entry, *late] for entry, late in pairs))


@pytest.mark.no_cover
@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25)
@given(queries=queries, seed=st.integers(0, 9), data=st.data())
def test_outcomes_may_arrive_in_any_order(name: str, queries: list[Query], seed: int, data: st.DataObject) -> None:
    """Outcomes and forfeits that come after the last decision leave the same state in whatever order they come."""
    entries = play(POLICIES[name], queries, seed)
    assert state(shuffled(entries, data)) == state(shuffled(entries, data))


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["revocable", "any stream", "paper", "paper with a prior", "hoeffding", "budget"])
@settings(max_examples=25)
@given(queries=queries, seed=st.integers(0, 9), data=st.data())
def test_outcomes_may_arrive_at_any_time(name: str, queries: list[Query], seed: int, data: st.DataObject) -> None:
    """Where no threshold latches, early and late outcomes of the same decisions end in the same state."""
    entries = play(POLICIES[name], queries, seed)
    assert state(scattered(entries, data)) == state(entries)


@settings(max_examples=25)
@given(queries=queries, seed=st.integers(0, 9), data=st.data())
def test_wealth_that_is_owed_is_a_lower_bound(queries: list[Query], seed: int, data: st.DataObject) -> None:
    """While outcomes are missing, no threshold has more wealth than it will have (MATH 5)."""
    entries = play(POLICIES["revocable"], queries, seed)
    partial = [entry for entry in entries if not isinstance(entry, Resolved) or data.draw(st.booleans())]
    some, all_known = Router.rebuild(partial), Router.rebuild(entries)
    for threshold in (0.01, 0.1, 0.11, 0.5, 1.0):
        assert some.log_wealth(threshold) <= all_known.log_wealth(threshold)


@settings(max_examples=25)
@given(queries=queries, seed=st.integers(0, 9), data=st.data())
def test_rates_that_learn_do_not_see_the_order(queries: list[Query], seed: int, data: st.DataObject) -> None:
    """Exploration driven by gain has the same state whatever order outcomes come in after the last decision."""
    entries: list[Entry] = []
    policy = Portfolio(memory="revocable")
    router = Router(0.5, 0.6, policy, exploration=GainDriven(every=3), seed=seed, journal=entries.append)
    for score, loss in queries:
        decision = router.decide(score)
        if decision.call_expert:
            router.observe(decision, loss or 0.0)
    first, second = state(shuffled(entries, data)), state(shuffled(entries, data))
    assert first == second
    assume(router.threshold > 0.0)
    assert first["learner"]["rounds"] + len(first["learner"]["recent"]) == len(queries)
