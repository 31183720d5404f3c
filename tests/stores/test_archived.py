"""A SQLite store whose first entries were cut: what is left is read along its hash chain, also after a failure."""

from itertools import islice
from pathlib import Path

import pytest

from bpac.stores import Game, SqliteStore, StoreError
from bpac.stores.store import Archived
from tests.stores.journals import play


def cut(path: Path, count: int = 12) -> tuple[SqliteStore, Game]:
    """A store with a game whose first entries were cut."""
    store = SqliteStore(str(path), commit_each=True)
    game, _, _ = play(store, 30)
    head = next(islice(store.links(game), count - 1, None)).head
    store.cut(game, Archived(count, head, {"router": {}}, "", "archive.jsonl"))
    return store, game


def test_what_is_left_is_read_and_the_rest_is_refused(tmp_path: Path) -> None:
    """Entries after the cut come back along the chain; a reader of the whole journal is told where the rest is."""
    store, game = cut(tmp_path / "bpac.db")
    length = store.length(game)
    assert len(list(store.entries(game, 12))) == len(list(store.links(game))) == length - 12
    with pytest.raises(StoreError, match="the first 12 entries of game 1 are archived, the last of them in archive"):
        store.entries(game)
    store.close()
    store = SqliteStore(str(tmp_path / "bpac.db"))
    assert (store.losses(), store.length(game)) == ([], length)
    store.close()


def test_it_is_opened_again_after_a_failure(tmp_path: Path) -> None:
    """The proof that nothing was lost counts the archived entries."""
    store, game = cut(tmp_path / "bpac.db")
    store._writer.fail(OSError("no space"))
    again = store.reopened()
    assert again.failure is None
    assert again.length(game) == store.length(game)
    again.close()
