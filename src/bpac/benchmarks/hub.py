"""Data sets on the Hugging Face hub."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bpac.benchmarks.rows import DatasetRow
from bpac.errors import MissingExtra, TableError


@dataclass(frozen=True, slots=True)
class HubSource:
    """A data set on the hub, and the part of it to read.

    Parameters
    ----------
    dataset: its name on the hub.
    split: the split to read (default: ``test``).
    parts: its configurations, in order (default: the only one, which has no name).
    revision: the branch or commit to read (default: the newest).
    rows: the number of rows to read from each part (default: all).
    """

    dataset: str
    split: str = "test"
    parts: tuple[str, ...] = ("",)
    revision: str | None = None
    rows: int | None = None


def hub_rows(source: HubSource) -> Iterator[DatasetRow]:
    """Every row of a data set on the hub, one part after the other."""
    library = _library()
    split = source.split if source.rows is None else f"{source.split}[:{source.rows}]"
    for part in source.parts:
        try:
            table = library.load_dataset(source.dataset, part or None, split=split, revision=source.revision)
        except (OSError, ValueError, RuntimeError) as error:
            raise TableError(
                f"{source.dataset} {part}: cannot be loaded from the Hugging Face hub ({error})"
            ) from error
        place = " ".join(filter(None, (source.dataset, part, source.split)))
        for number, row in enumerate(table, start=1):
            yield DatasetRow(f"{place}: row {number}", number, dict(row), part)


def _library() -> Any:
    try:
        import datasets  # noqa: PLC0415  # an optional dependency
    except ImportError as error:
        raise MissingExtra("datasets", "datasets") from error
    return datasets
