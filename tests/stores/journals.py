"""A router that writes to a store, and a process that writes until it is killed."""

import asyncio
import sys

from bpac.routing.journal.entries import Entry, Opened
from bpac.routing.router import Router
from bpac.stores import Game, Store, open_store
from bpac.stores.store import Claim


def play(store: Store, rounds: int, route: str = "homework") -> tuple[Game, list[Entry], Router]:
    """A game of a number of rounds, with every other outcome outstanding."""
    game = store.open_game(route, "", "{}")
    written: list[Entry] = []

    def write(entry: Entry) -> None:
        store.append(game, entry, {"at": 1.5} if not isinstance(entry, Opened) else {})
        written.append(entry)

    router = Router(0.1, 0.1, seed=3, journal=write)
    for number in range(rounds):
        decision = router.decide(number % 10 / 10)
        if decision.call_expert and number % 2:
            router.observe(decision, number % 7 / 7)
    return game, written, router


def claim(router: Router, entries: int, head: str = "") -> Claim:
    """What a gateway would claim about that router."""
    return Claim(entries, {"threshold": router.threshold}, head)


def write_until_killed(address: str) -> None:
    """Append and print what is durable, forever."""

    async def run() -> None:
        store = open_store(address)
        (game,) = store.games() or [store.open_game("homework", "", "{}")]
        entries = [kept.entry for kept in store.entries(game)]

        def write(entry: Entry) -> None:
            store.append(game, entry, {})

        router = Router.rebuild(entries, journal=write) if entries else Router(0.1, journal=write)

        async def ask() -> None:
            while True:
                decision = router.decide(0.5)
                await store.durable()
                sys.stdout.write(f"{decision.step}\n")
                sys.stdout.flush()

        await asyncio.gather(*(ask() for _ in range(8)))

    asyncio.run(run())


if __name__ == "__main__":
    write_until_killed(sys.argv[1])
