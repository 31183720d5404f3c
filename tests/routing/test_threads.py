"""A router that is used from several threads loses nothing."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bpac import Router
from bpac.routing.journal.entries import Entry
from bpac.routing.segments import Segments

THREADS = 4


class NoLock:
    """Looks like a lock, and excludes no thread."""

    busy = False

    def start(self) -> None:
        """Return at once."""

    def acquire(self) -> None:
        """Return at once."""

    def release(self) -> None:
        """Return at once."""


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    """Let threads take turns as often as Python allows, so that what can go wrong does."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def run(*works: Callable[[], object]) -> list[BaseException]:
    """Run all at once, each in a thread; return the errors that ended any of them."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def traffic(router: Router, seed: int, rounds: int) -> Callable[[], None]:
    """Work that sends queries to a router, with tickets, and reports every kind of outcome."""

    def work() -> None:
        dice = np.random.default_rng(seed)
        for score, luck, fate in dice.random((rounds, 3)).tolist():
            ticket = router.arrive()
            if fate < 0.05:
                router.withdraw(ticket, "no score")
                continue
            if fate < 0.1:
                router.overdue(ticket)
            decision = router.decide(score, ticket=ticket)
            if not decision.call_expert:
                continue
            if fate < 0.9:
                router.worth_grading(decision)
                router.observe(decision, float(luck < score**2 / 4))
            elif fate < 0.95:
                router.forfeit(decision)
            else:
                router.refuse(decision)

    return work


def bare_rounds(router: Router, steps: list[int], rounds: int) -> Callable[[], None]:
    """Work that decides and observes, and keeps the numbers of its decisions."""

    def work() -> None:
        for _ in range(rounds):
            decision = router.decide(0.3)
            steps.append(decision.step)
            if decision.call_expert:
                router.observe(decision, 0.0)

    return work


def count_rounds(*, locked: bool) -> tuple[int, int, int]:
    """Decisions made by several threads, how many of them have a number of their own, and how many were counted."""
    rounds, steps = 4000, [list[int]() for _ in range(THREADS)]
    router = Router(0.1, 0.1, seed=1)
    if not locked:
        router._lock = NoLock()  # type: ignore[assignment]
    errors = run(*(bare_rounds(router, each, rounds) for each in steps))
    if locked:
        assert not errors
    made = [step for each in steps for step in each]
    return len(made) + len(errors), len(set(made)), router.step


def test_several_threads_lose_no_round() -> None:
    """Every decision has a number of its own and is counted."""
    assert count_rounds(locked=True) == (4000 * THREADS,) * 3


def test_without_the_lock_rounds_are_lost() -> None:
    """The control: without its lock the same program loses rounds, so a lock that is missing would be noticed."""
    # A try in forty is lucky and loses none.
    tries = (count_rounds(locked=False) for _ in range(10))
    assert any(min(different, counted) < made for made, different, counted in tries)


@pytest.mark.parametrize("policy", ["portfolio", "paper", "budget"])
def test_the_journal_of_several_threads_rebuilds_the_router(policy: str) -> None:
    """Entries are written in the order in which they take effect, whatever is read meanwhile."""
    entries: list[Entry] = []
    router = Router(0.15, 0.2, policy, seed=5, max_owed=64, journal=entries.append)
    done = threading.Event()
    read: list[Any] = []

    def reads() -> None:
        while not done.is_set():
            read[:] = (router.threshold, router.owed, router.under_way, router.held_up, router.certificate())
            read.append((router.summary(), router.bettor_state(), repr(router)))
            snapshot = router.snapshot()
            assert Router.rebuild([], snapshot=snapshot).snapshot() == snapshot

    def all_traffic() -> None:
        try:
            errors.extend(run(*(traffic(router, seed, 500) for seed in range(THREADS))))
        finally:
            done.set()

    errors: list[BaseException] = []
    errors.extend(run(all_traffic, reads))
    assert not errors
    assert read
    assert router.stop()
    assert Router.rebuild(entries).snapshot() == router.snapshot()


def test_a_journal_may_read_the_router_that_it_writes_for() -> None:
    """The thread that holds the lock may take it again."""
    thresholds: list[float] = []
    router = Router(0.1, 0.1, seed=1)
    router._journal = lambda entry: thresholds.append(router.threshold)
    router.observe(router.decide(0.3), 0.0)
    assert thresholds == [0.0, 0.0]


def test_several_threads_start_one_router_for_a_segment() -> None:
    """Two threads that ask for a new segment at the same time get the same router."""
    started: list[str] = []

    def start(name: str, alpha: float) -> Router:
        started.append(name)
        return Router(0.1, alpha)

    segments = Segments(start, 0.1)
    names = [f"segment {number}" for number in range(50)]
    works = [lambda: [segments.router(name) for name in names] for _ in range(THREADS)]
    assert not run(*works)
    assert sorted(started) == sorted(names)
