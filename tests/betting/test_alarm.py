import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bpac.betting.drift.alarm import AlarmSettings, DriftAlarm
from bpac.betting.payoff import Terms
from bpac.errors import SettingsError
from tests.betting.rounds import a_round
from tests.transcriptions import AlarmTranscription

TERMS = Terms(0.1, 0.05)
SETTINGS = AlarmSettings(careful_at=3.0, careful_rate=0.4, reset_at=40.0)

# (least propensity, loss or None for a kept draft, whether the draft lay below the threshold), so often
Event = tuple[float, float | None, bool, int]
events = st.lists(
    st.tuples(
        st.sampled_from([1.0, 0.7, 0.4, 0.05]),
        st.sampled_from([None, None, 0.0, 0.3, 1.0]),
        st.booleans(),
        st.integers(1, 30),
    ),
    max_size=15,
)


def feed(alarm: DriftAlarm, event: Event) -> None:
    """Count one round."""
    least, loss, below, _ = event
    if loss is None:
        alarm.fade(least)
    else:
        alarm.known(a_round(0.5, least if below else 1.0, least, threshold=0.6 if below else 0.5), loss)


@given(events=events, lift=st.integers(0, 3))
def test_the_alarm_agrees_with_one_update_per_round(events: list[Event], lift: int) -> None:
    """Counting quiet rounds until the level is needed gives what one update per round gives (MATH 3)."""
    alarm, slow = DriftAlarm(TERMS, SETTINGS), AlarmTranscription(TERMS.epsilon)
    loud: list[Event] = [(0.05, 1.0, True, 1)] * lift
    for event in loud + events:
        least, loss, below, times = event
        for _ in range(times):
            feed(alarm, event)
            slow.update(0.95 * (loss or 0.0) / least if below else 0.0, least)
        assume(all(abs(slow.level - bar) > 1e-6 for bar in (3.0, 40.0)))
        assert alarm.level == pytest.approx(slow.level, rel=1e-9)
        assert alarm.careful_rate == (0.4 if slow.level >= 3.0 else 0.0)
        assert alarm.rings == (slow.level >= 40.0)


@given(events=events, cut=st.integers(0, 15))
def test_an_alarm_continues_from_its_saved_state(events: list[Event], cut: int) -> None:
    """State through JSON leads to the same bits as never stopping."""
    steady = stopped = DriftAlarm(TERMS, SETTINGS)
    for index, event in enumerate(events):
        if index == cut:
            stopped = DriftAlarm(TERMS, SETTINGS)
            stopped.load(json.loads(json.dumps(steady.state())))
        for _ in range(event[3]):
            feed(steady, event)
            if stopped is not steady:
                feed(stopped, event)
    assert stopped.state() == steady.state()
    assert (stopped.level, stopped.careful_rate, stopped.rings) == (steady.level, steady.careful_rate, steady.rings)


def test_an_easy_past_does_not_delay_the_alarm() -> None:
    """After any number of quiet rounds the same few losses ring the alarm."""
    alarms = [DriftAlarm(TERMS, AlarmSettings()) for _ in range(2)]
    for _ in range(50_000):
        alarms[1].fade(0.05)
    for alarm in alarms:
        for _ in range(12):
            alarm.known(a_round(0.1, 0.05, threshold=0.5), 1.0)
        assert alarm.rings


@pytest.mark.parametrize(
    "bad",
    [
        {"careful_at": 1.0},
        {"careful_at": 20_000.0},
        {"careful_at": "5"},
        {"careful_rate": 0.0},
        {"careful_rate": 1.0},
        {"reset_at": float("inf")},
        {"stakes": ()},
        {"stakes": (0.4, 0.0)},
        {"stakes": (0.4, "1")},
    ],
    ids=str,
)
def test_bad_alarm_settings_are_refused(bad: dict[str, float]) -> None:
    """Levels must rise from above 1, the rate must be a rate, and there must be at least one stake."""
    with pytest.raises(SettingsError, match=r"careful|reset|stake"):
        AlarmSettings(**bad)  # type: ignore[arg-type]
