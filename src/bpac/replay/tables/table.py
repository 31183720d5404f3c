"""Tables of recorded answers: one row per question, with the loss of its draft. Nothing here changes its arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bpac.errors import TableError

Vector = NDArray[np.float64]
# Numbers, words, and none where a cell is empty.
FeatureColumn = NDArray[np.object_]
# More rows than this do not fit in memory with their features.
MOST_ROWS = 50_000_000


@dataclass(frozen=True, slots=True)
class Table:
    """Recorded answers of a draft model and an expert model, in order.

    A column is None unless it is known for every row.

    Parameters
    ----------
    uncertainty: score of each draft, in [0, 1].
    loss: loss of each draft against the expert's answer, in [0, 1].
    draft_tokens, expert_tokens: tokens that each model generated.
    expert_correct: 1 where the expert's answer is correct, else 0.
    expert_preferred: 1 where a judge prefers the expert's answer to the draft, else 0.
    coin: uniform draws to use in place of a random source.
    features: what else is known of each draft before it is decided, by name: scores can be learned from it.
    """

    uncertainty: Vector
    loss: Vector
    draft_tokens: Vector | None = None
    expert_tokens: Vector | None = None
    expert_correct: Vector | None = None
    expert_preferred: Vector | None = None
    coin: Vector | None = None
    features: Mapping[str, FeatureColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.uncertainty)

    def columns(self) -> dict[str, Vector]:
        """The known columns by name."""
        columns = {name: getattr(self, name) for name in self.__slots__ if name != "features"}
        return {name: column for name, column in columns.items() if column is not None}

    def take(self, rows: NDArray[Any]) -> "Table":
        """The table with only these rows, given by index or mask, in their order."""
        features = {name: column[rows] for name, column in self.features.items()}
        return replace(self, features=features, **{name: column[rows] for name, column in self.columns().items()})

    @property
    def has_few_scores(self) -> bool:
        """Whether fewer than one score in ten is distinct, as with stated confidences."""
        return 10 * len(np.unique(self.uncertainty)) < len(self)

    @property
    def has_graded_losses(self) -> bool:
        """Whether most losses that are not 0 are at most a half, as with a judge's marks."""
        losses = self.loss[self.loss > 0.0]
        return bool(np.median(losses) <= 0.5) if len(losses) else False

    def only(self, verdict: Literal["expert_correct", "expert_preferred"]) -> "Table":
        """The rows in which the expert is correct, or preferred: the filters that the paper applies."""
        column: Vector | None = getattr(self, verdict)
        if column is None:
            option = verdict.replace("_", "-")
            raise TableError(f"--{option}-only needs the column {verdict} with a value in every row")
        kept = self.take(column == 1.0)
        if not len(kept):
            raise TableError(f"{verdict} is 0 in every row, so that no row is left to replay")
        return kept


def shuffled(table: Table, rng: np.random.Generator) -> Table:
    """The rows in random order: an i.i.d. stream made from a table."""
    return table.take(rng.permutation(len(table)))


def head(table: Table, rows: int) -> Table:
    """The first rows of a table."""
    if not 1 <= rows <= len(table):
        raise TableError(f"cannot take the first {rows} rows of a table with {len(table)} rows")
    return table.take(np.arange(rows))


def repeated(table: Table, times: int) -> Table:
    """Every row as many times: a longer stream with the same distribution, once it is shuffled."""
    return table.take(np.tile(np.arange(len(table)), times))


def reweighted(table: Table, weights: Vector) -> Table:
    """Every row as many times as its weight says: a table with the distribution that the weights describe.

    Weights that are no whole numbers are rounded so that the counts of any run of rows differ from the sum of their
    weights by less than 1. Without ``coin``: equal rows must not share their random draws.

    >>> table = Table(np.array([0.1, 0.9]), np.array([0.0, 1.0]))
    >>> reweighted(table, np.array([2.5, 1.0])).uncertainty.tolist()
    [0.1, 0.1, 0.1, 0.9]
    """
    total = float(weights.sum())
    if not total <= MOST_ROWS:
        raise TableError(f"the rows stand for {total:,.0f} requests, which is more than {MOST_ROWS:,}: use fewer rows")
    counts = np.diff(np.floor(np.cumsum(weights) + 0.5), prepend=0.0).astype(np.int64)
    return replace(table.take(np.repeat(np.arange(len(table)), counts)), coin=None)


def joined(*tables: Table) -> Table:
    """The rows of all tables, one table after the other. Only columns that all of them have are kept."""
    if not tables:
        raise TableError("there are no tables to join")
    columns = [table.columns() for table in tables]
    shared = [name for name in columns[0] if all(name in other for other in columns)]
    features = {
        name: np.concatenate([table.features[name] for table in tables])
        for name in tables[0].features
        if all(name in table.features for table in tables)
    }
    return Table(features=features, **{name: np.concatenate([other[name] for other in columns]) for name in shared})
