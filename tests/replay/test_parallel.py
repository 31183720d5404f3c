"""Tasks in parallel: finished runs are saved, and the numbers do not depend on where they are computed."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bpac.cli.program import main
from bpac.errors import InputError
from bpac.replay.parallel import Engine, run_tasks
from bpac.replay.studies import study
from bpac.replay.studies.own import OWN
from bpac.replay.tables.builtin import BENCHMARKS

(DELAYS,) = (one for one in OWN if one.name == "delays")


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two runs, so that three runs are more than one."""
    monkeypatch.setattr("bpac.replay.parallel.CHUNK", 2)


@dataclass(frozen=True, slots=True)
class CountedTask:
    """A task that leaves a file for every run that is computed."""

    folder: Path

    def key(self) -> dict[str, Any]:
        """Always the same."""
        return {}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The number of the run."""
        (self.folder / f"{number}").touch(exist_ok=False)
        return {"number": np.array(number)}


def test_a_stopped_command_resumes(tmp_path: Path) -> None:
    """Finished runs are not computed again, half-written ones are, and the numbers are the same either way."""
    computed = tmp_path / "computed"
    computed.mkdir()
    keep = tmp_path / "keep"
    run_tasks([CountedTask(computed)], 10, keep, Engine(workers=1))
    (keep / "unfinished.part").write_bytes(b"half")
    (result,) = run_tasks([CountedTask(computed)], 23, keep, Engine(workers=1))
    assert result["number"].tolist() == list(range(23))
    assert len(list(computed.iterdir())) == 23


def test_at_least_one_run_is_needed() -> None:
    """Zero runs are refused before anything is computed."""
    with pytest.raises(InputError, match="runs must be at least 1"):
        run_tasks([], 0, Path("unused"))


def test_runs_of_a_built_in_table_that_has_changed_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a task depends on the content of its built-in table and not only on its name."""
    task = DELAYS.tasks()[0]
    before = task.key()
    assert task.key() == before
    other = replace(BENCHMARKS[task.stream], wrong=0.2)
    monkeypatch.setitem(BENCHMARKS, task.stream, other)
    assert task.key() != before


@pytest.mark.usefixtures("small_chunks")
def test_the_number_of_processes_does_not_change_the_numbers(tmp_path: Path) -> None:
    """One process and two give the same numbers to the last bit."""
    tasks = DELAYS.tasks()
    one, two = (run_tasks(tasks, 3, tmp_path / str(n), Engine(workers=n)) for n in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert first["paths"].shape == (3, 4, 100)
        assert np.array_equal(first["paths"], second["paths"])


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a real Dask scheduler with two worker processes."""
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    log = tmp_path / "scheduler.log"
    processes = []
    try:
        with log.open("w") as out:
            processes.append(subprocess.Popen([*dask, "--no-dashboard"], stderr=out, stdout=out))
        address = ""
        while not address:
            assert processes[0].poll() is None, log.read_text()
            found = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
            address = found[1] if found else ""
            time.sleep(0.02)
        for number in range(2):
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
            worker += ["--no-nanny", "--local-directory", str(tmp_path / str(number))]
            processes.append(subprocess.Popen(worker, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        yield address
    finally:
        for process in reversed(processes):
            process.kill()  # a worker that receives SIGTERM may wait for its scheduler and never end
            process.wait()


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.filterwarnings("default")  # Dask itself warns
def test_a_dask_cluster_gives_the_same_numbers(scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real scheduler with two worker processes every number is the same to the last digit."""
    monkeypatch.setattr(study, "FORMATS", ("svg",))
    out = ["--runs", "3", "--out"]
    assert main(["reproduce", "delays", *out, str(tmp_path / "dask"), "--dask", scheduler]) == 0
    assert main(["reproduce", "delays", *out, str(tmp_path / "here"), "--workers", "1"]) == 0
    for name in ("delays.csv", "delays-paths.csv"):
        assert (tmp_path / "dask" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.filterwarnings("default")
def test_a_missing_dask_scheduler_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the address, and the command ends after a timeout."""
    monkeypatch.setattr("bpac.replay.parallel.DASK_TIMEOUT", "1s")
    arguments = ["reproduce", "delays", "--runs", "1", "--out", str(tmp_path), "--dask", "tcp://127.0.0.1:9"]
    assert main(arguments) == 2
    assert "--dask tcp://127.0.0.1:9: no Dask scheduler answers there" in capsys.readouterr().err
