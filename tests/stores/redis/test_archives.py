"""Old entries of a game in Redis move to files while it is played, by its folder only; none is lost on the way."""

from pathlib import Path
from typing import Any

import pytest

from bpac.cli.games.archived_files import archives_in, in_order
from bpac.cli.program import main
from bpac.errors import InputError, StoreError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.router import Router
from bpac.stores.export import journal_lines
from bpac.stores.line_files import read_lines
from bpac.stores.redis import archives
from bpac.stores.redis.archives import NotCut, RedisArchives
from bpac.stores.redis.journal import Position
from bpac.stores.redis.store import RedisStore
from bpac.stores.store import Game
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import Seat, new_game, new_name, run_game, settled
from tests.stores.redis.test_shared_games import played


def audited(store: RedisStore, game: Game, *folders: Path) -> int:
    """The number of entries that an audit of archives and stream has read; it has found nothing wrong."""
    before = store.archived(game)
    files = in_order(archives_in(folders), 0 if before is None else before.entries)
    lines = [line for path in files for line in read_lines(path)]
    audit = audit_journal([*lines, *(f"{line}\n" for line in journal_lines(store, game))])
    assert audit.differences == []
    return audit.entries


def test_old_entries_move_to_files_of_several_folders(
    redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash before the cut, a lease that was lost, files on two machines, a slow replica: no entry is missing."""
    one, two = tmp_path / "one", tmp_path / "two"

    async def run() -> None:
        address = redis.address(new_name(), lease=1)
        store, game = new_game(address)
        seat = Seat(address, game, Router(0.2, 0.1).settings, snapshot_every=100)
        await seat.sit_down()
        old, keys = RedisArchives(store, game), store.of(game).keys
        assert old.due_at(50) == 0  # there is no snapshot yet
        with pytest.raises(StoreError, match="no snapshot"):
            old.archive(one, seat.folder.token)

        async def more(rounds: int) -> int:
            await played([seat], rounds, rounds)
            await seat.side.sent()
            await settled(store, game)
            return store.length(game)

        await more(120)
        due = old.due_at(50)
        length = await more(200)
        assert 50 < due == old.due_at(50) <= length
        late = Seat(address, game, Router(0.2, 0.1).settings)  # it has read nothing so far
        # The process dies when the file is there, and before the entries are cut.
        with monkeypatch.context() as dying:
            dying.setattr(old, "_cut", _dies)
            with pytest.raises(KeyboardInterrupt):
                old.archive(one, seat.folder.token)
        assert store.archived(game) is None
        assert audited(store, game, one) == length
        # A folder that has lost its lease must not cut.
        with pytest.raises(NotCut, match="another replica folds it"):
            RedisArchives(store, game).archive(two, seat.folder.token + 1)
        assert store.archived(game) is None
        # The next folder, on another machine, writes the same range.
        found = RedisArchives(store, game).archive(two, seat.folder.token)
        assert (found.first, found.last, due) == (1, due - 50, found.last + 50)
        assert [path.name for path in sorted(one.iterdir())] == [found.file]
        first = store.client.command("XRANGE", store.of(game).journal, "-", "+", "COUNT", 1)[0][0]
        assert first == b"%d-0" % (found.last + 1)
        assert audited(store, game, two) == audited(store, game, one) == length
        # A replica that was behind the cut goes on from the snapshot.
        await catches_up(late, length)
        # The next part is written by the first machine: together the folders have everything, alone they do not.
        length = await more(700)
        assert RedisArchives(store, game).due_at(1) <= length + 1
        second = RedisArchives(store, game).archive(one, seat.folder.token)
        assert second.first == found.last + 1
        assert audited(store, game, one, two) == length
        with pytest.raises(InputError, match=f"entries 1 to {found.last} are missing"):
            in_order(archives_in([one])[1:], second.last)
        # Keys of coins go with the entries whose coins they prove, and the last block stays.
        assert store.key(game, 1) is None
        assert int(store.client.command("ZCARD", keys)) >= 1
        await seat.get_up()

    run_game(run)


async def catches_up(late: Seat, length: int) -> None:
    """Have a replica read the journal from the snapshot, and again from an entry that is archived."""
    copy = late.folder.copy
    await copy.catch_up()
    assert copy.position.entries == length
    position, copy.position = copy.position, Position(1, b"")
    await copy.catch_up()
    assert copy.position == position
    await late.client.close()


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_cannot_be_written_or_read_back_is_not_cut(
    redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, a file that changes on the way, a stop, a head that differs: the stream keeps its entries."""

    async def run() -> None:
        address = redis.address(new_name(), lease=1)
        store, game = new_game(address)
        seat = Seat(address, game, Router(0.2, 0.1).settings, snapshot_every=100)
        await seat.sit_down()
        await played([seat], 200, 200)
        await seat.side.sent()
        await settled(store, game)
        names, token = store.of(game), seat.folder.token
        old = RedisArchives(store, game)
        assert old.due_at(10)

        def full(path: Path, lines: Any, ending: str) -> None:
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as disk:
            disk.setattr(archives, "write_lines", full)
            with pytest.raises(OSError, match="No space"):
                old.archive(tmp_path, token)
        with monkeypatch.context() as disk:
            disk.setattr(archives, "read_lines", lambda path, ending: iter(["other\n"]))
            with pytest.raises(StoreError, match="read back"):
                old.archive(tmp_path, token)
        old.stopped = True
        with pytest.raises(NotCut, match="stops"):
            old.archive(tmp_path, token)
        old.stopped = False
        text = store.client.command("GET", names.point)
        point = old._point()
        assert point is not None
        store.client.command("SET", names.point, text.replace(point["head"].encode(), b"0" * 64))
        with pytest.raises(StoreError, match="not what was published"):
            old.archive(tmp_path, token)
        store.client.command("SET", names.point, text)
        assert list(tmp_path.iterdir()) == []
        assert store.archived(game) is None
        # Somebody archives by hand, up to the same point and beyond it: the point is not used again.
        old.archive(tmp_path, token)
        store.client.command("SET", names.point, text)
        assert old.due_at(10) == 0  # until there is a later snapshot
        await seat.get_up()

    run_game(run)


def test_audits_choose_games_and_say_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Directories without archives, with those of several games, and with gaps are explained."""
    assert main(["audit", str(tmp_path)]) == 2
    assert "there is no archive in" in capsys.readouterr().err
    for name in ("game-1-entries-1-9-0123456789ab.jsonl", "game-2-entries-5-9-0123456789ab.parquet", "other.txt"):
        (tmp_path / name).write_text("")
    assert main(["audit", str(tmp_path)]) == 2
    assert "archives of the games 1, 2: choose one with --game" in capsys.readouterr().err
    rest = tmp_path / "rest.jsonl"
    rest.write_text('{"entry":"archived","head":"00","entries":9,"file":"x"}\n')
    assert main(["audit", str(tmp_path), str(rest), "--game", "2"]) == 2
    assert "entries 1 to 4 are missing" in capsys.readouterr().err
