"""Files that commands write: each is written completely or not at all, and never over a file that is read."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bpac.errors import BpacError, InputError

DEVICES = Path("/dev")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Write a file atomically: yield a temporary path beside it, and rename that when the block ends without an error.

    Missing directories are created. A path that is not an ordinary file, such as ``/dev/stdout``, is yielded itself.

    Parameters
    ----------
    path: the file to write.
    """
    try:
        # Renaming a file to a device would replace the device.
        if _is_device(path) or (path.exists() and not path.is_file() and not path.is_dir()):
            yield path
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()  # a symbolic link stays one, and points to the new file
        unfinished = target.with_name(f"unfinished-{target.name}")
        try:
            yield unfinished
            if target.exists():
                shutil.copymode(target, unfinished)
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BpacError(f"{path}: cannot be written ({error.strerror or error})") from error


def refuse_overwriting(outputs: Mapping[str, Path | None], inputs: Iterable[str | Path]) -> None:
    """Raise ``InputError`` if an output would overwrite an input or another output.

    Parameters
    ----------
    outputs: output files by the option that names each; None where the option was not given.
    inputs: the files that are read.

    >>> refuse_overwriting({"--trace": Path("t.csv"), "--html": None}, ["./t.csv"])
    Traceback (most recent call last):
    ...
    bpac.errors.InputError: --trace t.csv would overwrite a file that is read: give another file
    """
    given = {option: path for option, path in outputs.items() if path is not None and not _is_device(path)}
    read = [Path(path) for path in inputs]
    for option, path in given.items():
        if any(_same(path, other) for other in read):
            raise InputError(f"{option} {path} would overwrite a file that is read: give another file")
        for other, file in given.items():
            if other != option and _same(path, file):
                raise InputError(f"{option} and {other} name the same file, {path}: give each its own file")


def _is_device(path: Path) -> bool:
    return path.is_relative_to(DEVICES)


def _same(one: Path, other: Path) -> bool:
    # samefile also finds hard links, and names that differ only in case on file systems that ignore it.
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return one.resolve() == other.resolve()
