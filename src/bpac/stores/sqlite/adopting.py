"""A game from another store that goes on in a SQLite store."""

import json
import zlib
from collections.abc import Iterator

from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entry_lines import entry_from_json
from bpac.stores.sqlite.archives import ARCHIVE
from bpac.stores.sqlite.reading.checking import seal
from bpac.stores.sqlite.writing.statements import APPEND, CLAIM, KEY, OPEN, SNAPSHOT, USE, Work, step_of
from bpac.stores.whole_game import WholeGame


def adopting(whole: WholeGame) -> Iterator[Work]:
    """The statements that write a game; they must be committed together."""
    game = whole.game
    yield OPEN, (game.number, game.route, game.segment, game.terms, game.head)
    yield USE, (game.number,)
    count, head = 0, game.head
    if (archived := whole.archived) is not None:
        count, head, text = archived.entries, archived.head, json.dumps(archived.snapshot)
        yield ARCHIVE, (game.number, count, head, text, seal(head, text), archived.block, archived.file)
    for key in whole.keys:
        yield KEY, (game.number, *key)
    for text, note in whole.entries:
        count, head = count + 1, next_head(head, text)
        step = step_of(entry_from_json(text, count))
        yield APPEND, (game.number, count, step, text, note, head, zlib.crc32(note.encode()))
    for claim in whole.claims:
        yield CLAIM, (game.number, claim.entries, json.dumps(claim.values), claim.head)
    if whole.snapshot is not None:
        text = json.dumps(whole.snapshot)
        yield SNAPSHOT, (game.number, text, count, seal(head, text))
