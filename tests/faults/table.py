"""All faults, one after the other, and the table of what they led to."""

import statistics
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from tests.faults.clocks import ClockScene
from tests.faults.lives import Lives
from tests.faults.scene import Row, Scene
from tests.faults.shared import EmptiedScene, SentinelScene, SharedScene
from tests.faults.workers import WorkersScene

HEAD = (
    "fault", "times", "back after (median)", "at most", "answers", "of them decided", "charged as loss 1",
    "in lost games", "counted twice", "missing",
)  # fmt: skip
SCENES = ("shared", "emptied", "sentinel", "clocks", "workers")

# All faults of gateways that share a game, in one scene: the short version.
EVERYTHING = "everything"


def scene_named(name: str, directory: Path, lives: Lives) -> Scene:
    """The processes for some faults."""
    directory.mkdir()
    if name == "workers":
        return WorkersScene(directory)
    if name in ("clocks", EVERYTHING):
        return ClockScene(directory)
    if name == "sentinel":
        return SentinelScene(directory, lives, 2)
    if name == "emptied":
        return EmptiedScene(directory, lives, 2)
    return SharedScene(directory, lives, redis=("--appendonly", "yes"))


def all_rows(
    directory: Path, times: int, names: Sequence[str] = SCENES, done: Callable[[str], object] = lambda fault: None
) -> list[Row]:
    """Let every fault happen a number of times.

    Parameters
    ----------
    directory: for files.
    times: how often.
    names: of the scenes.
    done: called after each fault.
    """
    rows = []
    with closing(Lives()) as lives:
        for name in names:
            with scene_named(name, directory / name, lives) as scene:
                faults = scene.faults()
                if name == EVERYTHING and isinstance(scene, ClockScene):
                    faults = scene.everything()
                for fault, happens in faults:
                    rows.append(row := Row(fault))
                    for _ in range(times):
                        scene.happen(row, happens)
                        done(fault)
                scene.books.store.close()
    return rows


def cells(row: Row) -> list[str]:
    """A row as texts."""
    times = [statistics.median(row.seconds), max(row.seconds)] if row.seconds else [float("nan")] * 2
    numbers = (row.served, row.decided, row.loss_1, row.lost, row.twice, row.missing)
    return [row.fault, str(len(row.seconds)), *(f"{one:.2f} s" for one in times), *(f"{one:,}" for one in numbers)]


def printed(rows: Sequence[Row]) -> str:
    """The table, as Markdown."""
    lines = [HEAD, ("---", *["---:"] * (len(HEAD) - 1)), *map(cells, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
