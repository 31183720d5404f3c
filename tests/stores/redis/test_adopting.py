"""A game that was played elsewhere goes on in Redis."""

from typing import Any

import pytest

from bpac.errors import StoreError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.coins import SeededCoins
from bpac.routing.journal.entries import Entry, Resolved, Started
from bpac.routing.router import Router
from bpac.stores.export import journal_lines
from bpac.stores.redis.adopting import adopt
from bpac.stores.sqlite.writing.statements import entry_text
from bpac.stores.store import Game
from bpac.stores.whole_game import WholeGame, WrittenEntry
from tests.redis_servers import RedisServer
from tests.routing.learning.drafts import drafts
from tests.stores.redis.shared_game import Seat, new_game, new_name, run_game, settled
from tests.stores.redis.test_shared_games import played


def killed() -> tuple[Router, list[Entry], int]:
    """A router that died with queries under way and audits open; its journal, and how many audits were open."""
    entries: list[Entry] = []
    router = Router(0.2, 0.1, coins=SeededCoins(2), journal=entries.append)
    for number, draft in enumerate(drafts(300)):
        decision = router.decide(draft.uncertainty**2, ticket=router.arrive())
        if decision.call_expert and number < 290:
            router.observe(decision, draft.loss)
    for _ in range(3):
        router.arrive()
    return router, entries, len(router.owed)


def whole(game: Game, router: Router, entries: list[Entry]) -> WholeGame:
    """The game as it is moved."""
    snapshot: dict[str, Any] = {"router": router.snapshot()}
    return WholeGame(game, None, (WrittenEntry(entry_text(one), "{}") for one in entries), [], [], snapshot)


def test_a_game_that_was_killed_goes_on_as_after_a_restart(redis: RedisServer) -> None:
    """The earliest ticket is charged, open audits are given up, nothing else changes, and the audit passes."""
    router, entries, owed = killed()
    assert owed > 0

    async def run() -> None:
        address = redis.address(new_name(), lease=1)
        store, _ = new_game(address)
        game = Game(7, "other", "", "{}")
        with pytest.raises(StoreError, match="changed the list"):
            adopt(store, whole(game, router, entries), 0)
        assert game not in store.games()
        head = adopt(store, whole(game, router, entries), store.listed()[1])
        assert (store.head(game), store.length(game)) == (head, len(entries))
        seat = Seat(address, game, router.settings)
        await seat.sit_down()
        await played([seat], 100, 100)
        await seat.side.sent()
        await settled(store, game)
        stored = [one.entry for one in store.entries(game)]
        assert stored[: len(entries)] == entries
        started, *given_up = stored[len(entries) : len(entries) + 1 + owed]
        assert started == Started()
        assert given_up == [Resolved(decision.step, None, "restart") for decision in router.owed]
        # A restart of the same router does the same.
        again = Router.rebuild([*entries, Started(), *given_up])
        assert again.threshold <= router.threshold
        audit = audit_journal(f"{line}\n" for line in journal_lines(store, game))
        assert audit.differences == []
        assert audit.rounds > 300 + 80
        # No game gets its number, and later ones have others.
        assert store.open_game("third", "", "{}").number == 8
        await seat.get_up()

    run_game(run)
