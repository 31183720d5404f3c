"""Archives of a game in one or more directories, put in order for an audit.

Gateways on several machines may each have archived a part of a journal, and a crash may leave a part twice. The name of
an archive says which entries are in it; the audit checks that they are.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bpac.errors import InputError
from bpac.routing.journal.entries import ARCHIVED
from bpac.routing.journal.entry_lines import remark_from_json

NAME = re.compile(r"game-(\d+)-entries-(\d+)-(\d+)-[0-9a-f]{12}\.(?:parquet|jsonl)")


class ArchiveFile(NamedTuple):
    """An archive.

    Parameters
    ----------
    path: the file.
    game: number of the game.
    first, last: numbers of the first and the last entry in it.
    """

    path: Path
    game: int
    first: int
    last: int


def archives_in(directories: Iterable[Path]) -> list[ArchiveFile]:
    """The archives in some directories; a part that is in several of them is listed once."""
    found: dict[str, ArchiveFile] = {}
    for directory in directories:
        for path in sorted(directory.iterdir()):
            if (name := NAME.fullmatch(path.name)) is not None:
                found.setdefault(path.name, ArchiveFile(path, *map(int, name.groups())))
    return list(found.values())


def of_one_game(archives: Sequence[ArchiveFile], number: int | None) -> list[ArchiveFile]:
    """The archives of the one game that is meant, or an error that lists the games.

    Parameters
    ----------
    archives: of all games.
    number: of the game; not needed if there is only one.
    """
    games = sorted({archive.game for archive in archives})
    if number is None and len(games) > 1:
        raise InputError(f"there are archives of the games {', '.join(map(str, games))}: choose one with --game")
    return [archive for archive in archives if number in (None, archive.game)]


def archived_before(line: str) -> int:
    """How many entries are archived before a file that begins with this line."""
    remark = remark_from_json(line)
    return int(remark[1].get("entries", 0)) if remark is not None and remark[0] == ARCHIVED else 0


def in_order(archives: Sequence[ArchiveFile], upto: int | None) -> list[Path]:
    """The archives that contain the first entries of a journal, each entry once, or an error that says what is missing.

    Parameters
    ----------
    archives: of one game; some may contain entries of others, too.
    upto: number of the last entry; none for as many as there are.

    >>> files = [ArchiveFile(Path(name), 1, *range_) for name, range_ in
    ...          {"a": (1, 50), "b": (1, 70), "c": (71, 90), "d": (51, 60)}.items()]
    >>> [str(path) for path in in_order(files, 90)]
    ['b', 'c']
    """
    # Every number that can be reached from the beginning, with the archive that leads there.
    reached: dict[int, ArchiveFile | None] = {0: None}
    for archive in sorted(archives, key=lambda one: one.first):
        if archive.first - 1 in reached:
            reached.setdefault(archive.last, archive)
    end = max(reached) if upto is None else upto
    if end not in reached:
        raise InputError(_missing(archives, max(number for number in reached if number < end), end))
    paths: list[Path] = []
    while (archive_there := reached[end]) is not None:
        paths.insert(0, archive_there.path)
        end = archive_there.first - 1
    return paths


def _missing(archives: Sequence[ArchiveFile], reached: int, wanted: int) -> str:
    later = [archive.first for archive in archives if archive.first > reached + 1]
    last = min([wanted, *(first - 1 for first in later)])
    return (
        f"entries {reached + 1} to {last} are missing: no archive that begins with entry {reached + 1} leads on to "
        f"entry {wanted}. Give the directories of all gateways that have folded the game"
    )
