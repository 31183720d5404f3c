"""Queries under load and with faults: what happens, and in which order."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.cli.program import main
from bpac.errors import InputError
from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Answered, Arrived, Crashed, CutOff, Drafted, Event, Late
from bpac.replay.simulation.faults import OUTAGE, Faults
from bpac.replay.simulation.gateway import SimulatedGateway
from bpac.replay.simulation.laws import LAWS
from bpac.replay.simulation.load import under_load
from bpac.replay.tables.table import Table
from bpac.replay.validation import Validation
from bpac.routing.policies import named_policy
from bpac.routing.router import Router


def events_of(
    count: int, drafting: Drafting, delay: str = "none", faults: str = "", *, open_: bool = False
) -> list[Event]:
    """All events of a stream in which every third draft loses."""
    rounds = [(0.5, float(query % 3 == 0)) for query in range(1, count + 1)]
    rng = np.random.default_rng(0)
    parsed = Faults.parse(faults)
    return list(under_load(rounds, drafting, Delay.parse(delay), rng, faults=parsed, accepting=lambda: open_))


@given(
    count=st.integers(1, 60),
    in_flight=st.integers(1, 20),
    time=st.sampled_from(["none", "independent:3", "losses:4"]),
    delay=st.sampled_from(["none", "losses:5", "lost:0.3"]),
)
def test_every_query_arrives_is_drafted_and_answered_once(count: int, in_flight: int, time: str, delay: str) -> None:
    """In this order, and never with more drafts in flight than asked for."""
    in_flight_now: set[int] = set()
    drafted: set[int] = set()
    answered: Counter[int] = Counter()
    arrived = 0
    for event in events_of(count, Drafting.parse(time, in_flight), delay):
        if isinstance(event, Arrived):
            arrived += 1
            assert event.query == arrived
            in_flight_now.add(event.query)
            assert len(in_flight_now) <= in_flight
        elif isinstance(event, Drafted):
            in_flight_now.remove(event.query)
            drafted.add(event.query)
        elif isinstance(event, Answered):
            assert event.query in drafted
            answered[event.query] += 1
    assert drafted == set(range(1, count + 1))
    assert max(answered.values(), default=0) <= 1
    assert delay != "none" or len(answered) == count


def test_drafts_end_in_order_of_arrival_unless_losses_are_slow() -> None:
    """Drafts that take equally long end in the order of arrival; slow drafts with a loss end later than others."""
    equal = [e.query for e in events_of(300, Drafting(32)) if isinstance(e, Drafted)]
    assert equal == sorted(equal)
    slow = [e for e in events_of(3000, Drafting.parse("losses:5", 32)) if isinstance(e, Drafted)]
    waits: dict[float, list[int]] = {0.0: [], 1.0: []}
    for place, event in enumerate(slow, start=1):
        waits[event.loss].append(place - event.query)
    assert np.mean(waits[1.0]) > np.mean(waits[0.0]) + 30


def test_an_outage_of_the_draft_model_ends_all_drafts_in_flight() -> None:
    """They are cut off when it begins, and every query that arrives during it has no score."""
    events = events_of(600, Drafting.parse("losses:3", 8), faults="outage-draft")
    assert sum(isinstance(event, CutOff) for event in events) == 1
    assert sum(isinstance(event, Drafted) and event.uncertainty is None for event in events) == OUTAGE
    decided = sum(isinstance(event, Drafted) and event.uncertainty is not None for event in events)
    # When the outage begins a draft has just ended, so that all but one of the eight are in flight.
    assert decided == 600 - OUTAGE - 7


def test_outages_of_expert_and_grader_lose_outcomes() -> None:
    """During an outage of the expert or of the grader every outcome is lost, and none counts as refused."""
    for faults in ("outage-expert", "outage-grader"):
        outcomes = [event for event in events_of(1200, Drafting(), faults=faults) if isinstance(event, Answered)]
        lost = [event for event in outcomes if event.loss is None]
        assert len(lost) == OUTAGE
        assert not any(event.refused for event in lost)


def test_attackers_send_requests_with_uncertainty_0() -> None:
    """They send them at random, or only while drafts are accepted; all queries of the stream still arrive."""
    for faults, open_ in (("refusals", False), ("refusals-timed", True)):
        drafts = [
            event for event in events_of(200, Drafting(), faults=faults, open_=open_) if isinstance(event, Drafted)
        ]
        refused = [event for event in drafts if event.refused]
        assert len(drafts) - len(refused) == 200
        assert len(refused) > 100
        assert {event.uncertainty for event in refused} == {0.0}
    assert len(events_of(200, Drafting(), faults="refusals-timed", open_=False)) == 3 * 200
    # Attacks end with the stream, also with many drafts in flight.
    assert len(events_of(200, Drafting(16), faults="refusals-timed", open_=True)) < 10 * 3 * 200


def test_a_crash_loses_queries_in_flight_and_pending_outcomes() -> None:
    """No draft and no outcome of a query that arrived before the crash is reported after it."""
    events = events_of(400, Drafting.parse("losses:3", 16), "independent:10", "crash:100")
    at = [place for place, event in enumerate(events) if isinstance(event, Crashed)]
    assert len(at) == 3
    before = {event.query for event in events[: at[0]] if isinstance(event, Arrived)}
    assert not before & {event.query for event in events[at[0] :] if isinstance(event, Drafted | Answered)}


def test_a_hung_draft_never_ends_and_is_late_once() -> None:
    """All other drafts end, and so does the stream."""
    drafting = Drafting(4, 0.0, 1.0, hung=10, deadline=20.0)
    events = events_of(200, drafting)
    assert {event.query for event in events if isinstance(event, Drafted)} == set(range(1, 201)) - {10}
    assert [event.query for event in events if isinstance(event, Late)] == [10]
    assert not any(isinstance(event, Late) for event in events_of(200, Drafting(4, hung=10, deadline=math.inf)))


def test_a_crash_without_a_journal_is_refused() -> None:
    """The error says that the simulation needs a journal."""
    with pytest.raises(InputError, match="needs a journal"):
        SimulatedGateway(Router(0.1), tickets=False).handle(Crashed())


@pytest.mark.parametrize("tickets", [True, False])
def test_a_replay_under_load_returns_every_row_once(tickets: bool) -> None:
    """Rows are returned in the order of decisions, each once, and decisions have tickets exactly if asked for."""
    rng = np.random.default_rng(1)
    table = Table(np.arange(500) / 500.0, (rng.random(500) < 0.2).astype(float))
    drafting = Drafting.parse("losses:3", 16, tickets=tickets)
    make_router = RouterFactory(named_policy("portfolio"), 0.1, 0.1)
    ordered, path = Replay(table, make_router, order="given", drafting=drafting).run(0, trace=True)
    assert sorted(ordered.uncertainty) == table.uncertainty.tolist()
    assert ordered.uncertainty.tolist() != table.uncertainty.tolist()
    assert [decision.uncertainty for decision in path.decisions] == ordered.uncertainty.tolist()
    assert all(bool(decision.ticket) is tickets for decision in path.decisions)


def test_draft_times_do_not_matter_for_one_draft_at_a_time() -> None:
    """With one draft in flight the time that it takes changes no number, with or without tickets."""
    make_router = RouterFactory(named_policy("portfolio"), 0.1, 0.1)
    plain = Validation(make_router, LAWS["rising"], steps=300)
    for time, tickets in (("none", False), ("losses:3", True)):
        drafting = Drafting.parse(time, 1, tickets=tickets)
        assert Validation(make_router, LAWS["rising"], steps=300, drafting=drafting).stream(5) == plain.stream(5)


@pytest.mark.parametrize("text", ["", "losses:0", "losses:-1", "losses:nan", "none:1", "independent:x", "slow:2"])
def test_invalid_draft_times_are_refused(text: str) -> None:
    """The error lists what is possible."""
    with pytest.raises(InputError, match="is none of: none, independent:MEAN or losses:FACTOR"):
        Drafting.parse(text)


@pytest.mark.parametrize(
    "text", ["crash", "crash:0", "crash:-5", "crash:x", "outage", "outage-judge", "refusals:3", " "]
)
def test_invalid_faults_are_refused(text: str) -> None:
    """The error names the fault and lists what is possible."""
    with pytest.raises(InputError, match="is none of: outage-draft"):
        Faults.parse(text)


def test_validate_and_replay_take_load_and_faults(capsys: pytest.CaptureFixture[str]) -> None:
    """The reports contain what was simulated, and mistakes have exit code 2."""
    options = ["--in-flight", "8", "--draft-time", "losses:3", "--faults", "outage-draft,crash:60"]
    assert main(["validate", "--streams", "2", "--steps", "300", *options, "--json"]) == 0
    report = capsys.readouterr().out
    for part in (
        '"in_flight": 8',
        '"draft_time": "losses:3"',
        '"tickets": true',
        '"crash_every": 60',
        '"violations": 0',
    ):
        assert part in report
    assert main(["replay", "builtin:math-like", "--runs", "1", "--in-flight", "8", "--no-tickets", "--json"]) == 0
    assert '"tickets": false' in capsys.readouterr().out
    assert main(["validate", "--streams", "1", "--in-flight", "0"]) == 2
    assert main(["validate", "--streams", "1", "--faults", "flood"]) == 2
