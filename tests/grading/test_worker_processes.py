"""Worker processes: they answer, they are killed at their limits, and none is left behind."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpac.grading.mathematics.worker_processes import TookTooLong, WorkerProcesses
from tests.gateway.configured import wait_for
from tests.processes import has_ended

WORKER = """
import os, sys, time
from bpac.grading.mathematics.worker_processes import serve_lines

def answer(question):
    what, number = question
    if what == "double":
        return 2 * number
    if what == "pid":
        return os.getpid()
    if what == "sleep":
        time.sleep(number)
    if what == "memory":
        return len(bytearray(number))
    if what == "power":
        return len(str(9 ** number)) if number < 9 else 9 ** (9 ** number) and 0
    if what == "exit":
        os._exit(1)
    if what == "print":
        print("not an answer")
        sys.stdout.flush()
        return number

serve_lines(answer, 2**29)
"""


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerProcesses]:
    """Two workers whose work succeeds, takes too long, needs too much memory or ends the process."""
    (tmp_path / "a_worker.py").write_text(WORKER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    processes = WorkerProcesses("a_worker", 2)
    yield processes
    processes.close()
    assert not processes.pids


def gone(pid: int) -> bool:
    """Whether a process has ended and is not a zombie."""
    return not Path(f"/proc/{pid}").exists()


def test_a_worker_answers_questions_in_order(processes: WorkerProcesses) -> None:
    """A worker answers one question after the other, and what it prints is not an answer."""
    assert [processes.ask(["double", number], 30.0) for number in range(5)] == [0, 2, 4, 6, 8]
    assert processes.ask(["print", 3], 30.0) == 3
    assert processes.ask(["double", 3], 30.0) == 6
    assert len(processes.pids) == 1


@pytest.mark.parametrize("question", [["sleep", 60], ["power", 9], ["exit", 0]])
def test_work_over_the_time_limit_is_killed(processes: WorkerProcesses, question: list[object]) -> None:
    """Even an operation that no exception can interrupt is killed; the next question gets a new process."""
    pid = processes.ask(["pid", 0], 30.0)
    with pytest.raises(TookTooLong):
        processes.ask(question, 0.3)
    assert gone(pid)
    assert processes.ask(["double", 4], 30.0) == 8
    assert processes.ask(["pid", 0], 30.0) != pid


def test_memory_is_limited(processes: WorkerProcesses) -> None:
    """Work that needs more memory than allowed ends its own process, not this one."""
    with pytest.raises(TookTooLong, match="ended"):
        processes.ask(["memory", 2**30], 30.0)
    assert processes.ask(["memory", 2**20], 30.0) == 2**20


def test_many_threads_share_few_processes(processes: WorkerProcesses) -> None:
    """Sixteen threads get their own answers from two processes, even while some of those are killed."""
    found: dict[int, object] = {}

    def ask(number: int) -> None:
        try:
            found[number] = processes.ask(["double", number] if number % 4 else ["exit", 0], 30.0)
        except TookTooLong:
            found[number] = "killed"

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: 2 * number if number % 4 else "killed" for number in range(16)}
    assert len(processes.pids) <= 2


def test_closing_ends_running_work(processes: WorkerProcesses) -> None:
    """A waiting caller gets an error, no process is left running, and none is started afterwards."""
    pid = processes.ask(["pid", 0], 30.0)
    outcome: list[str] = []

    def ask() -> None:
        try:
            processes.ask(["sleep", 600], 600.0)
        except TookTooLong:
            outcome.append("ended")

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.1)
    processes.close()
    thread.join(timeout=60)
    assert outcome == ["ended"]
    assert gone(pid)
    with pytest.raises(TookTooLong):
        processes.ask(["double", 1], 30.0)


def test_closing_releases_all_waiting_callers(processes: WorkerProcesses) -> None:
    """Callers that wait for a free worker, and later callers, get an error instead of waiting."""
    outcomes: list[str] = []

    def ask() -> None:
        try:
            processes.ask(["sleep", 600], 600.0)
        except TookTooLong:
            outcomes.append("ended")

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    processes.close()
    for thread in threads:
        thread.join(timeout=60)
    assert outcomes == ["ended"] * 6
    with pytest.raises(TookTooLong, match="closed"):
        processes.ask(["double", 1], 30.0)


def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """A killed program leaves no worker behind, even one that works on an endless question."""
    (tmp_path / "a_worker.py").write_text(WORKER, encoding="utf-8")
    program = (
        "import sys, threading, time\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from bpac.grading.mathematics.worker_processes import WorkerProcesses\n"
        "processes = WorkerProcesses('a_worker', 1)\n"
        "print(processes.ask(['pid', 0], 60.0), flush=True)\n"
        "threading.Thread(target=processes.ask, args=(['power', 9], 0.1)).start()\n"
        "time.sleep(0.2)\n"
        "import os; os.kill(os.getpid(), 9)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    pid = int(ran.stdout)
    wait_for(lambda: has_ended(pid))


def test_a_forked_child_gets_its_own_workers(processes: WorkerProcesses) -> None:
    """A forked child does not read answers for its parent."""
    mine = processes.ask(["pid", 0], 30.0)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        theirs = processes.ask(["pid", 0], 30.0)
        os.write(writes, b"own" if theirs != mine else b"shared")
        processes.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reads, 10) == b"own"
    os.close(reads)
    os.close(writes)
    assert processes.ask(["pid", 0], 30.0) == mine
