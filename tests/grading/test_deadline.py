"""Work that must end, in whatever thread it is done."""

import time

import pytest

from bpac.grading.deadline import TookTooLong, within


def test_work_in_time_is_returned() -> None:
    """What the work gives back or raises passes through."""
    assert within(5.0, lambda: "done") == "done"
    with pytest.raises(ZeroDivisionError):
        within(5.0, lambda: 1 // 0)


def test_endless_work_is_stopped_even_if_it_catches_every_exception() -> None:
    """``except Exception`` does not swallow the end."""

    def stubborn() -> None:
        while True:
            try:
                time.sleep(0.001)
            except Exception:
                continue

    with pytest.raises(TookTooLong):
        within(0.05, stubborn)


def test_nothing_arrives_after_the_end() -> None:
    """Work that ends just when its time is over either counts or not; later code is never interrupted."""
    outcomes = set()
    for attempt in range(1_000):
        try:
            within((attempt % 10) * 0.0001, lambda: sum(range(20_000)))
            outcomes.add("done")
        except TookTooLong:
            outcomes.add("late")
        sum(range(1_000))
    assert outcomes == {"done", "late"}


def test_the_interpreter_is_as_fast_afterwards() -> None:
    """Stopping work leaves nothing behind that slows every later instruction."""

    def count() -> float:
        begun = time.perf_counter()
        for _ in range(200_000):
            pass
        return time.perf_counter() - begun

    def sleep() -> None:
        for _ in range(5_000):
            time.sleep(0.001)

    before = min(count() for _ in range(7))
    within(5.0, lambda: None)
    with pytest.raises(TookTooLong):
        within(0.01, sleep)
    assert min(count() for _ in range(7)) < 4 * before + 0.005
