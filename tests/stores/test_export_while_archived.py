"""Exports of a journal whose first entries are archived while it is read."""

import json
from collections.abc import Iterator
from typing import Any, cast

from bpac.stores.export import journal_lines
from bpac.stores.store import Archived, Claim, Game, Link, Store

GAME = Game(1, "route", "", "{}")
CUT = Archived(2, b"head", {}, "", "file")
LINKS = [Link(json.dumps({"entry": number}), b"head") for number in range(3)]


class Cut:
    """A store in which entries are archived just before they are read for the first time."""

    def __init__(self) -> None:
        self._archived: Archived | None = None

    def archived(self, game: Game) -> Archived | None:
        """What is archived."""
        return self._archived

    def claims(self, game: Game) -> list[Claim]:
        """None."""
        return []

    def links(self, game: Game) -> Iterator[Link]:
        """Those that are not archived."""
        self._archived = CUT
        yield from LINKS[CUT.entries :]


def test_the_first_line_says_where_the_entries_begin() -> None:
    """Otherwise an audit would find that the journal was changed, although a gateway has only archived a part of it."""
    first, *rest = map(json.loads, journal_lines(cast(Store, cast(Any, Cut())), GAME))
    assert (first["entry"], first["entries"]) == ("archived", CUT.entries)
    assert [line["entry"] for line in rest] == [2]
