"""Audited rounds with their propensity: repeated 1/propensity times they have the distribution of the traffic."""

from pathlib import Path

import numpy as np
import pytest

from bpac.errors import TableError
from bpac.replay.oracle import risk_of
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.table import Table, reweighted
from bpac.replay.tables.weights import open_replay_table
from bpac.replay.tables.writing import write_columns

ROUNDS, THRESHOLD, RATE = 20_000, 0.6, 0.1


def audits(seed: int) -> tuple[Table, Table, Table]:
    """The traffic of a game with an open threshold, its audited rounds, and these with their weights."""
    rng = np.random.default_rng(seed)
    uncertainty, loss = PowerLaw(0.4, 1.5).draw(ROUNDS, rng)
    propensity = np.where(uncertainty < THRESHOLD, RATE, 1.0)
    audited = rng.random(ROUNDS) < propensity
    traffic = Table(uncertainty, loss)
    return traffic, traffic.take(audited), reweighted(traffic.take(audited), 1.0 / propensity[audited])


def test_weighted_audits_have_the_risk_of_the_traffic() -> None:
    """At every threshold the risk is that of the traffic, to within five standard errors; audits alone are harder."""
    traffic, alone, weighted = audits(seed=0)
    assert len(weighted) == pytest.approx(ROUNDS, rel=0.03)
    harder = 0
    for threshold in (0.2, 0.4, 0.6, 0.8, 1.0):
        risk = risk_of(traffic, threshold)
        below = min(threshold, THRESHOLD)
        error = 5.0 * np.sqrt((risk_of(traffic, below) / RATE + risk) / ROUNDS)
        assert abs(risk_of(weighted, threshold) - risk) < error
        harder += abs(risk_of(alone, threshold) - risk) > error
    assert harder >= 2  # the negative control: without weights the same check fails


def test_counts_follow_the_weights() -> None:
    """Whole weights are counts; others are rounded so that the total stays right; coins are not shared by copies."""
    table = Table(np.arange(4) / 4, np.zeros(4), coin=np.zeros(4))
    assert reweighted(table, np.array([1.0, 3.0, 1.0, 2.0])).uncertainty.tolist() == [
        0,
        0.25,
        0.25,
        0.25,
        0.5,
        0.75,
        0.75,
    ]
    many = reweighted(table, np.array([10 / 3] * 4))
    assert len(many) == 13
    assert {int((many.uncertainty == one).sum()) for one in table.uncertainty} <= {3, 4}
    assert many.coin is None
    with pytest.raises(TableError, match="more than 50,000,000"):
        reweighted(table, np.full(4, 1e9))


def test_a_column_of_ones_changes_nothing_and_a_bad_one_is_named(tmp_path: Path) -> None:
    """Weights are used only where a propensity is below 1; one of 0 or above 1 is an error with its place."""
    path = tmp_path / "t.csv"
    columns: dict[str, list[float]] = {"uncertainty": [0.1, 0.2], "loss": [0, 1], "propensity": [1.0, 1.0]}
    write_columns(columns, path)
    assert open_replay_table(str(path)).recorded is None
    write_columns(columns | {"propensity": [1.0, 0.5]}, path)
    opened = open_replay_table(str(path))
    assert opened.recorded is not None
    assert (len(opened.recorded), opened.table.loss.tolist()) == (2, [0.0, 1.0, 1.0])
    for value in (0.0, 1.5):
        write_columns(columns | {"propensity": [1.0, value]}, path)
        with pytest.raises(TableError, match="row 2, column propensity"):
            open_replay_table(str(path))
