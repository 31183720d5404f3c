"""Files that commands write: each appears whole or not at all, and never in the place of what it is made from."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bpac.errors import BpacError, InputError

DEVICES = Path("/dev")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write a file, beside its place; it gets there when the block ends without an error.

    Missing directories are made. What is no ordinary file, such as ``/dev/stdout``, is written to itself.

    Parameters
    ----------
    path: the place.
    """
    try:
        # To rename a file to a device would do away with the device.
        if _device(path) or (path.exists() and not path.is_file() and not path.is_dir()):
            yield path
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        place = path.resolve()  # a link stays one, and leads to the new file
        unfinished = place.with_name(f"unfinished-{place.name}")
        try:
            yield unfinished
            if place.exists():
                shutil.copymode(place, unfinished)
            unfinished.replace(place)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BpacError(f"{path}: cannot be written ({error.strerror or error})") from error


def refuse_overwriting(outputs: Mapping[str, Path | None], inputs: Iterable[str | Path]) -> None:
    """Raise ``InputError`` if an output would take the place of an input or of another output.

    Parameters
    ----------
    outputs: by the option that names each; none where it was not given.
    inputs: the files that are read.

    >>> refuse_overwriting({"--trace": Path("t.csv"), "--html": None}, ["./t.csv"])
    Traceback (most recent call last):
    ...
    bpac.errors.InputError: --trace t.csv would overwrite what is read: give another place
    """
    given = {option: path for option, path in outputs.items() if path is not None and not _device(path)}
    read = [Path(path) for path in inputs]
    for option, path in given.items():
        if any(_same(path, other) for other in read):
            raise InputError(f"{option} {path} would overwrite what is read: give another place")
        for other, place in given.items():
            if other != option and _same(path, place):
                raise InputError(f"{option} and {other} name the same file, {path}: give each a file of its own")


def _device(path: Path) -> bool:
    return path.is_relative_to(DEVICES)


def _same(one: Path, other: Path) -> bool:
    # Also by another name: a hard link, or other letters where the file system does not tell them apart.
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return one.resolve() == other.resolve()
