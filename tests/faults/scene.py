"""Running gateways with callers, to which faults happen one after the other; the books are checked after each."""

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from bpac.stores.store import Store
from tests.faults.books import Books
from tests.faults.callers import Callers
from tests.gateway.configured import wait_for


@dataclass
class Row:
    """One kind of fault and what it led to.

    Parameters
    ----------
    fault: what happened.
    seconds: how long each recovery took.
    served: answers that callers got while it happened, and how many of them were decisions.
    loss_1: audits and tickets that were charged as losses of 1.
    lost: answers of games that ended, openly, because Redis had lost them.
    twice, missing: what was counted twice, and answers that no journal has.
    wrong: what else is wrong.
    """

    fault: str
    seconds: list[float] = field(default_factory=list)
    served: int = 0
    decided: int = 0
    loss_1: int = 0
    lost: int = 0
    twice: int = 0
    missing: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def bad(self) -> bool:
        """Whether a number is wrong."""
        return bool(self.twice or self.missing or self.wrong)


class Scene(ABC):
    """Gateways, their store and their callers, from the beginning of a block to its end.

    Parameters
    ----------
    directory: for files.
    seed: of everything that is random.

    Attributes
    ----------
    callers: who asks.
    books: the journals, as far as they were read.
    over: the last game that was lost.
    empties: whether the store is empty after a fault.
    """

    callers: Callers
    books: Books
    over: int = 0
    empties: bool = False

    def __init__(self, directory: Path, seed: int = 1) -> None:
        self.directory = directory
        self.random = random.Random(seed)
        self.stack = ExitStack()
        self._checked = 0

    def __enter__(self) -> "Scene":
        with ExitStack() as stack:
            self.stack = stack
            self.open()
            self.stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stack.__exit__(kind, error, trace)

    @abstractmethod
    def open(self) -> None:
        """Start everything."""

    @abstractmethod
    def faults(self) -> Sequence[tuple[str, Callable[[], float]]]:
        """Names of faults, and what makes each happen, waits until all is well, and returns the seconds it took."""

    @abstractmethod
    def settled(self) -> None:
        """Wait until nothing is left to be done; callers ask nothing."""

    @abstractmethod
    def opened_store(self) -> Store:
        """The store, for reading."""

    def lost_until(self) -> float:
        """Until when callers may get answers that were decided in a game that is lost, and known to be."""
        return 0.0

    def repair(self) -> None:
        """Start again what a fault that went wrong has left behind."""

    def shown(self) -> None:
        """Compare what gateways show with the books."""

    def wait_for_decisions(self, urls: Sequence[str], moment: float, seconds: float = 60.0) -> float:
        """Wait until all gateways decide again; the moment."""
        wait_for(lambda: all(self.callers.decided_since(moment, url, self.over) for url in urls), seconds)
        return time.monotonic()

    def happen(self, row: Row, fault: Callable[[], float]) -> None:
        """Let a fault happen under load, and check the books."""
        callers, before = self.callers, self._before()
        time.sleep(self.random.uniform(0.15, 0.5))
        try:
            row.seconds.append(fault())
            callers.pause()
            self.settled()
            answers = callers.got[self._checked :]
            self._checked = len(callers.got)
            if self.empties:
                self._begin_anew(row)
                before = Counts()
            self.books.check(answers, self.lost_until())
            self.shown()
            row.served += len(answers)
            row.decided += sum(one.decision != "" for one in answers)
            row.lost += self.books.lost - before.lost
            row.loss_1 += self.books.newest("loss 1") if self.empties else self.books.count("loss 1") - before.loss_1
            row.twice += self.books.twice - before.twice
            row.missing += len(self.books.missing) - before.missing
            row.wrong += self.books.wrong[before.wrong :]
        except AssertionError as error:
            row.wrong.append(f"no recovery: {error}")
            self._checked = len(callers.got)
            self.repair()
        callers.go_on()

    def _before(self) -> "Counts":
        books = self.books
        return Counts(books.count("loss 1"), books.twice, len(books.missing), len(books.wrong), books.lost)

    def _begin_anew(self, row: Row) -> None:
        """The store was emptied, and the journals begin anew."""
        self.books.store.close()
        self.books = Books(self.opened_store())
        if not self.books.store.losses():
            row.wrong.append("Redis was emptied, and nothing says so")


@dataclass(frozen=True)
class Counts:
    """What was counted before a fault."""

    loss_1: int = 0
    twice: int = 0
    missing: int = 0
    wrong: int = 0
    lost: int = 0
