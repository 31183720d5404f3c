"""``make bench``: a benchmark that misses a goal ends with 1, and the others run all the same."""

import re
import subprocess
from pathlib import Path

import pytest
from benchmarks.gateways import CORES, GOAL, Group, goals_missed
from benchmarks.processes import Server

from benchmarks import cost, gateways, import_time, workers
from benchmarks import gateway as one_gateway

ROOT = Path(__file__).parents[1]


def group(gateways: int, microseconds: float, calls: float = 0.1) -> Group:
    """Gateways whose requests take that much processor time in all, evenly divided."""
    servers = [Server(str(at), at, None) for at in range(gateways)]
    found = Group("", servers, Server("Redis", 99, None) if gateways > 1 else None)
    found.sent, found.batches = 1000, int(1000 * calls)
    found.turns = [{one.port: microseconds / len(servers) for one in servers}]
    return found


@pytest.mark.parametrize(
    ("microseconds", "calls", "missed"), [(400.0, 0.1, 0), (2 * 400.0 / GOAL + 1, 0.1, 1), (400.0, 2.1, 1)]
)
def test_missed_goals_are_counted(
    microseconds: float, calls: float, missed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two gateways on two cores must be 1.7 times one process, with at most two operations per request."""
    groups = [group(1, 400.0), group(CORES, microseconds, calls)]
    assert goals_missed(groups) == missed
    assert ("MISSED" in capsys.readouterr().out) == bool(missed)


def test_benchmarks_with_goals_return_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each prints MISSED and returns 1."""
    mains = (cost.main, one_gateway.main, gateways.main, import_time.main, workers.main)
    assert {main.__annotations__["return"] for main in mains} == {int}
    monkeypatch.setattr(import_time, "milliseconds", lambda code: 1000.0 if "bpac" in code else 100.0)
    assert import_time.main() == 1
    monkeypatch.setattr(import_time, "milliseconds", lambda code: 100.0)
    assert import_time.main() == 0
    seconds = {"transcription": 1.0, "with tickets": 0.3, "learned score": 0.5, "portfolio (alarmed)": 0.2}
    for learned, settled, missed in ((0.77, 1.9, 0), (0.79, 1.9, 1), (0.77, 2.1, 1), (0.79, 2.1, 2)):
        assert cost.cost_of_learning(seconds | {"learned, with tickets": learned}, settled) == missed


def test_make_bench_goes_on_and_fails_at_the_end(tmp_path: Path) -> None:
    """With a Python that fails for one benchmark: all are run, and the one is named."""
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"))
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@" >> ran\ntest "$2" != benchmarks.cost\n')
    python.chmod(0o755)
    made = ["-o", ".venv/ready", "-o", ".venv/deploy-tools"]  # as if they were there already
    for name in ("ready", "deploy-tools"):
        (tmp_path / ".venv" / name).touch()
    done = subprocess.run(["make", *made, "bench"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "missed a goal, or failed: cost\n" in done.stderr
    ran = re.findall(r"-m benchmarks\.(\w+)", (tmp_path / "ran").read_text())
    assert len(ran) == 9
    assert (ran[1], ran[-1]) == ("cost", "capacity")
