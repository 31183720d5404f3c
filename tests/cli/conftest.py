import csv
from pathlib import Path

import numpy as np
import pytest

from bpac.replay.simulation.laws import PowerLaw


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small table with tokens and coins."""
    rng = np.random.default_rng(0)
    uncertainty, loss = PowerLaw(0.5, 1.0).draw(800, rng)
    path = tmp_path / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("uncertainty", "loss", "draft_tokens", "expert_tokens", "expert_correct", "coin"))
        for number, (score, lost) in enumerate(zip(uncertainty, loss, strict=True)):
            writer.writerow((score, lost, 10, 100, number % 2, rng.random()))
    return path
