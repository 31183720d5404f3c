"""A game from another store, or a new one with a history, that begins in Redis with a journal.

1. All keys of the game are written first. The game is listed last, in one step, unless another one was listed
   meanwhile. Before that no gateway knows of it, so that after a crash the same command writes it again.
2. If the journal says that queries were under way, the inbox begins with a cut, which charges the earliest of them as
   a restart does (MATH section 12). Audits that were open belong to nobody, and are given up.
"""

from itertools import islice
from typing import Any

from msgspec import msgpack

from bpac.errors import StoreError
from bpac.routing.journal.chain import next_head
from bpac.stores.encoding import encode
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Archived, Game
from bpac.stores.whole_game import WholeGame

# Entries that are written at once.
PAGE = 500
# Who made the decisions of a game before it came to Redis.
NOBODY = ""


def adopt(store: RedisStore, whole: WholeGame, before: int) -> bytes:
    """Write a game and list it; the head of its hash chain. If this raises, it is not listed.

    Parameters
    ----------
    store: where it is written.
    whole: the game. Its number must be free.
    before: how often a game had been opened or resumed when that was found out.
    """
    game, names, command = whole.game, store.of(whole.game), store.client.command
    store.reserve(game.number)
    command("DEL", *(names.of(part) for part in names.PARTS))
    count, head = (0, game.head) if whole.archived is None else (whole.archived.entries, whole.archived.head)
    entries = iter(whole.entries)
    while page := list(islice(entries, PAGE)):
        store.client.run("adopt", [names.journal], msgpack.encode((count, page)))
        count += len(page)
        for entry in page:
            head = next_head(head, entry.text)
    for claim in whole.claims:
        values = {"entries": claim.entries, "head": claim.head, "values": claim.values}
        command("RPUSH", names.claims, encode(values))
    for key in whole.keys:
        command("ZADD", names.keys, key.first_step, key.key.hex())
    if whole.archived is not None:
        command("SET", names.archived, _archived(whole.archived))
    if whole.snapshot is not None:
        _write_snapshot(store, game, whole.snapshot, count, head)
    state = whole.snapshot["router"]["state"] if whole.snapshot is not None else {}
    began = (count, head.hex(), state.get("epoch", 1), state.get("step", 0), int(state.get("running", False)))
    store.client.run(
        "begin_adopted", [names.state, names.inbox], *began, NOBODY, 0 if whole.snapshot is None else count
    )
    if not store.list_game(game, before):
        raise StoreError("another gateway has changed the list of games at the same moment: try again")
    return head


def _write_snapshot(store: RedisStore, game: Game, snapshot: dict[str, Any], entries: int, head: bytes) -> None:
    owed = [[decision[0], NOBODY] for decision in snapshot["router"]["state"]["owed"]]
    text = encode({"entries": entries, "head": head.hex(), "state": {**snapshot, "owners": owed}})
    store.client.command("SET", store.of(game).snapshot, text)


def _archived(archived: Archived) -> str:
    return encode({**archived._asdict(), "head": archived.head.hex()})
