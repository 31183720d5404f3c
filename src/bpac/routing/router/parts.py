"""What a router consists of."""

import inspect
from collections.abc import Callable

from bpac.errors import SettingsError
from bpac.routing.coins import Coins, SeededCoins
from bpac.routing.journal.entries import Entry
from bpac.routing.lock import RouterLock
from bpac.routing.route import Route
from bpac.routing.router.proposals import Proposals
from bpac.routing.tickets.tickets import Tickets
from bpac.routing.worth_grading import GradingValue

Write = Callable[[Entry], object]


class RouterParts:
    """The parts of a router: its state, its journal, the queries under way, and the entries that it would write next.

    What can be done with them is in the classes built on this one, one for each role.
    """

    _lock: RouterLock
    _route: Route
    _journal: Write | None
    _tickets: Tickets
    _proposals: Proposals
    _grading_value: GradingValue

    def _start(self, route: Route, seed: int | None, coins: Coins | None, journal: Write | None) -> None:
        if journal is not None:
            _check_journal(journal)
        if coins is not None and not callable(getattr(coins, "draws", None)):
            raise SettingsError(f"coins must have a method draws(step), as SeededCoins has; got {coins!r}")
        self._lock = RouterLock()
        self._route = route
        self._journal = journal
        self._tickets = Tickets(route, self._write)
        self._proposals = Proposals(route, self._tickets, coins or SeededCoins(seed), self._write)
        self._grading_value = GradingValue()

    def _write(self, entry: Entry) -> None:
        if self._journal is not None:
            self._journal(entry)


def _check_journal(journal: object) -> None:
    """Refuse what would lose entries."""
    if not callable(journal):
        raise SettingsError(f"journal must be a function that takes an entry, such as entries.append; got {journal!r}")
    if inspect.iscoroutinefunction(journal):
        raise SettingsError(
            f"journal must have written the entry when it returns, and {journal!r} is a coroutine function: "
            "give a plain function, for example one that puts entries into a queue"
        )
