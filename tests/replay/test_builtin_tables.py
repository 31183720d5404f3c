"""Streams: orders, joins, files, and the built-in ones."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bpac.errors import InputError, TableError
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.builtin import BENCHMARKS, builtin_table, open_table
from bpac.replay.tables.streams import COLUMNS, head, joined, shuffled
from bpac.replay.tables.table import Table, read_table, write_table


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet"])
def test_a_table_can_be_written_and_read_back(tmp_path: Path, name: str) -> None:
    """Every format keeps every known column to the last bit."""
    rng = np.random.default_rng(0)
    columns = {column: rng.random(50) for column in COLUMNS}
    columns |= {verdict: (rng.random(50) < 0.5).astype(float) for verdict in ("expert_correct", "expert_preferred")}
    for table in (Table(**columns), Table(columns["uncertainty"], columns["loss"])):
        write_table(table, tmp_path / name)
        copy = read_table(tmp_path / name)
        for column in COLUMNS:
            assert np.array_equal(getattr(copy, column), getattr(table, column)) or getattr(table, column) is None
            assert (getattr(copy, column) is None) == (getattr(table, column) is None)


def test_a_table_is_not_written_to_a_file_of_another_kind(tmp_path: Path) -> None:
    """A name that says no format is refused before anything is written."""
    with pytest.raises(TableError, match=r"ends in \.csv"):
        write_table(builtin_table("math-like"), tmp_path / "t.xlsx")
    assert not list(tmp_path.iterdir())


def test_joining_keeps_what_is_known_of_all() -> None:
    """Rows stand one after the other; a column that one table lacks is not known."""
    first = Table(np.array([0.1]), np.array([0.0]), np.array([5.0]), np.array([50.0]))
    second = Table(np.array([0.2, 0.3]), np.array([1.0, 0.0]), np.array([6.0, 7.0]))
    both = joined(first, second)
    assert both.uncertainty.tolist() == [0.1, 0.2, 0.3]
    assert both.draft_tokens is not None
    assert both.expert_tokens is None
    assert head(both, 2).loss.tolist() == [0.0, 1.0]
    assert sorted(shuffled(both, np.random.default_rng(0)).uncertainty) == [0.1, 0.2, 0.3]


def test_nonsense_streams_are_refused() -> None:
    """No tables, too many rows, unknown names, and laws that are none."""
    table = builtin_table("math-like")
    for attempt in (
        joined,
        partial(head, table, 0),
        partial(head, table, len(table) + 1),
        partial(open_table, "builtin:chess"),
        partial(open_table, "builtin:math-like", "mood"),
        partial(PowerLaw, power=-1.0),
        partial(PowerLaw, weights=(0.5,)),
        partial(PowerLaw, sizes=(2.0,)),
    ):
        with pytest.raises(InputError):
            attempt()


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_the_risk_of_a_built_in_stream_is_known(name: str) -> None:
    """The closed form agrees with a large draw at every decile of the scores, within four standard errors."""
    law = BENCHMARKS[name].law
    uncertainty, loss = law.draw(400_000, np.random.default_rng(1))
    for threshold in np.quantile(uncertainty, np.linspace(0.1, 1.0, 10)):
        accepted = loss * (uncertainty < threshold)
        assert abs(accepted.mean() - law.risk(float(threshold))) < 4.0 * accepted.std() / np.sqrt(len(loss)) + 1e-9


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_a_built_in_table_follows_its_law(name: str) -> None:
    """The table's own risk is that of the law to within two losses, at every decile."""
    benchmark, table = BENCHMARKS[name], builtin_table(name)
    assert len(table) == benchmark.rows
    for threshold in np.linspace(0.1, 1.0, 10) ** benchmark.law.crowding:
        losses = float(np.sum(table.loss * (table.uncertainty < threshold)))
        slack = 2.0 if benchmark.law.sizes == (1.0,) else 0.1 * losses + 2.0
        assert abs(losses - benchmark.rows * benchmark.law.risk(float(threshold))) <= slack


def test_the_mixed_streams() -> None:
    """All of one benchmark with a few hard questions among them; and an easy one followed by a hard one."""
    assert len(builtin_table("magpie-and-bbh")) == 4379 + 100
    shift = builtin_table("mmlu-pro-then-bbh")
    assert shift.loss[:1500].mean() < shift.loss[1500:].mean()
