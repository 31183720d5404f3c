"""Queries under load: what happens, and in which order."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.cli.main import main
from bpac.errors import InputError
from bpac.replay.replay import Replay
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Answered, Arrived, Crashed, CutOff, Drafted, Event, Late
from bpac.replay.simulation.faults import OUTAGE, Faults
from bpac.replay.simulation.feed import Feed
from bpac.replay.simulation.laws import LAWS
from bpac.replay.simulation.load import under_load
from bpac.replay.start import Start
from bpac.replay.tables.table import Table
from bpac.replay.validation import Validation
from bpac.routing.policies import named_policy
from bpac.routing.router import Router


def happenings(
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
    """In this order, and never with more drafts under way than asked for."""
    under_way: set[int] = set()
    drafted: set[int] = set()
    answered: Counter[int] = Counter()
    arrived = 0
    for event in happenings(count, Drafting.parse(time, in_flight), delay):
        if isinstance(event, Arrived):
            arrived += 1
            assert event.query == arrived
            under_way.add(event.query)
            assert len(under_way) <= in_flight
        elif isinstance(event, Drafted):
            under_way.remove(event.query)
            drafted.add(event.query)
        elif isinstance(event, Answered):
            assert event.query in drafted
            answered[event.query] += 1
    assert drafted == set(range(1, count + 1))
    assert max(answered.values(), default=0) <= 1
    assert delay != "none" or len(answered) == count


def test_equal_times_keep_the_order_and_slow_losses_do_not() -> None:
    """Drafts that take equally long end in the order of arrival; where losses are slow they end later than others."""
    equal = [e.query for e in happenings(300, Drafting(32)) if isinstance(e, Drafted)]
    assert equal == sorted(equal)
    slow = [e for e in happenings(3000, Drafting.parse("losses:5", 32)) if isinstance(e, Drafted)]
    waits: dict[float, list[int]] = {0.0: [], 1.0: []}
    for place, event in enumerate(slow, start=1):
        waits[event.loss].append(place - event.query)
    assert np.mean(waits[1.0]) > np.mean(waits[0.0]) + 30


def test_an_outage_of_the_draft_ends_what_is_under_way() -> None:
    """All drafts under way are cut off at its start, and every query that arrives in it has no score."""
    events = happenings(600, Drafting.parse("losses:3", 8), faults="outage-draft")
    assert sum(isinstance(event, CutOff) for event in events) == 1
    assert sum(isinstance(event, Drafted) and event.uncertainty is None for event in events) == OUTAGE
    decided = sum(isinstance(event, Drafted) and event.uncertainty is not None for event in events)
    # When the outage begins a draft has just ended, so that all but one are under way.
    assert decided == 600 - OUTAGE - 7


def test_outages_of_expert_and_grader_lose_outcomes() -> None:
    """The expert's outage is known at once, the grader's when the deadline of its outcomes passes."""
    for faults in ("outage-expert", "outage-grader"):
        outcomes = [event for event in happenings(1200, Drafting(), faults=faults) if isinstance(event, Answered)]
        lost = [event for event in outcomes if event.loss is None]
        assert len(lost) == OUTAGE
        assert not any(event.refused for event in lost)


def test_attackers_send_requests_that_look_certain() -> None:
    """At random, or only while drafts are accepted; the stream's own queries all come through."""
    for faults, open_ in (("refusals", False), ("refusals-timed", True)):
        drafts = [
            event for event in happenings(200, Drafting(), faults=faults, open_=open_) if isinstance(event, Drafted)
        ]
        refused = [event for event in drafts if event.refused]
        assert len(drafts) - len(refused) == 200
        assert len(refused) > 100
        assert {event.uncertainty for event in refused} == {0.0}
    assert len(happenings(200, Drafting(), faults="refusals-timed", open_=False)) == 3 * 200
    # With many under way, too, attackers stop with the stream.
    assert len(happenings(200, Drafting(16), faults="refusals-timed", open_=True)) < 10 * 3 * 200


def test_a_crash_loses_what_is_on_its_way() -> None:
    """Queries under way and outcomes on their way are never heard of again."""
    events = happenings(400, Drafting.parse("losses:3", 16), "independent:10", "crash:100")
    at = [place for place, event in enumerate(events) if isinstance(event, Crashed)]
    assert len(at) == 3
    before = {event.query for event in events[: at[0]] if isinstance(event, Arrived)}
    assert not before & {event.query for event in events[at[0] :] if isinstance(event, Drafted | Answered)}


def test_a_hung_draft_never_ends_and_is_late_once() -> None:
    """The others go on without it, and the stream ends all the same."""
    drafting = Drafting(4, 0.0, 1.0, hung=10, deadline=20.0)
    events = happenings(200, drafting)
    assert {event.query for event in events if isinstance(event, Drafted)} == set(range(1, 201)) - {10}
    assert [event.query for event in events if isinstance(event, Late)] == [10]
    assert not any(isinstance(event, Late) for event in happenings(200, Drafting(4, hung=10, deadline=math.inf)))


def test_a_crash_needs_a_journal() -> None:
    """A feed without one says so."""
    with pytest.raises(InputError, match="needs a journal"):
        Feed(Router(0.1), tickets=False).take(Crashed())


@pytest.mark.parametrize("tickets", [True, False])
def test_a_replay_under_load_accounts_for_every_row(tickets: bool) -> None:
    """Rows come back in the order of decisions, each once, and tickets are taken exactly when they are asked for."""
    rng = np.random.default_rng(1)
    table = Table(np.arange(500) / 500.0, (rng.random(500) < 0.2).astype(float))
    drafting = Drafting.parse("losses:3", 16, tickets=tickets)
    start = Start(named_policy("portfolio"), 0.1, 0.1)
    ordered, path = Replay(table, start, order="given", drafting=drafting).one(0, trace=True)
    assert sorted(ordered.uncertainty) == table.uncertainty.tolist()
    assert ordered.uncertainty.tolist() != table.uncertainty.tolist()
    assert [decision.uncertainty for decision in path.decisions] == ordered.uncertainty.tolist()
    assert all(bool(decision.ticket) is tickets for decision in path.decisions)


def test_one_draft_at_a_time_changes_nothing() -> None:
    """With one draft under way the time it takes changes no number, with or without tickets."""
    start = Start(named_policy("portfolio"), 0.1, 0.1)
    plain = Validation(start, LAWS["rising"], steps=300)
    for time, tickets in (("none", False), ("losses:3", True)):
        drafting = Drafting.parse(time, 1, tickets=tickets)
        assert Validation(start, LAWS["rising"], steps=300, drafting=drafting).stream(5) == plain.stream(5)


@pytest.mark.parametrize("text", ["", "losses:0", "losses:-1", "losses:nan", "none:1", "independent:x", "slow:2"])
def test_draft_times_that_make_no_sense(text: str) -> None:
    """One line says what is possible."""
    with pytest.raises(InputError, match="is none of: none, independent:MEAN or losses:FACTOR"):
        Drafting.parse(text)


@pytest.mark.parametrize(
    "text", ["crash", "crash:0", "crash:-5", "crash:x", "outage", "outage-judge", "refusals:3", " "]
)
def test_faults_that_make_no_sense(text: str) -> None:
    """One line names the fault and says what is possible."""
    with pytest.raises(InputError, match="is none of: outage-draft"):
        Faults.parse(text)


def test_the_command_line_takes_load_and_faults(capsys: pytest.CaptureFixture[str]) -> None:
    """``validate`` reports what was simulated beside the keys that it always had; mistakes get exit code 2."""
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
