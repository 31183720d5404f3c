"""A gateway with several processes on SQLite, and the end of each of them."""

from collections.abc import Callable, Sequence
from contextlib import closing

from bpac.stores import open_store
from bpac.stores.store import Store
from bpac.testing import ScriptedServer
from tests.faults.books import Books
from tests.faults.callers import Callers
from tests.faults.scene import Scene
from tests.gateway.configured import wait_for
from tests.gateway.law import KnownPair
from tests.gateway.workers.crew import Crew


class WorkersScene(Scene):
    """``bpac serve --workers 2``."""

    def open(self) -> None:
        """Start everything."""
        models = self.stack.enter_context(ScriptedServer(KnownPair(delay=0.002, delay_of_loss=0.05)))
        self.crew = self.stack.enter_context(closing(Crew(self.directory, models.base_url)))
        self.crew.start()
        self.books = Books(self.opened_store())
        self.callers = self.stack.enter_context(Callers([self.crew.url], 12))
        self.wait_for_decisions([self.crew.url], 0.0)
        self.books.read()

    def opened_store(self) -> Store:
        """The store, for reading."""
        return open_store(self.crew.store, read_only=True)

    def settled(self) -> None:
        """Wait until every audit has an outcome."""
        wait_for(lambda: self.crew.game()["owed"] == 0)

    def shown(self) -> None:
        """Compare what the gateway shows with the books."""
        self.books.compare(self.crew.game())

    def faults(self) -> Sequence[tuple[str, Callable[[], float]]]:
        """Any process may end."""
        return [
            ("--workers: SIGKILL of a front", lambda: self._killed(f"front {self.random.randrange(2)}")),
            ("--workers: SIGKILL of the owner", lambda: self._killed("owner")),
        ]

    def _killed(self, name: str) -> float:
        seconds = self.crew.killed(name)
        before = len(self.callers.got)
        wait_for(lambda: len(self.callers.got) > before + 10)
        return seconds
