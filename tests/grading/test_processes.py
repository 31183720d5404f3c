"""Processes that can be killed: what they answer, what ends them, and that nothing is left behind."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpac.grading.mathematics.processes import Processes, TookTooLong

WORKER = """
import os, sys, time
from bpac.grading.mathematics.processes import serve_lines

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
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Two processes with work that is done, takes too long, takes too much memory or ends."""
    (tmp_path / "a_worker.py").write_text(WORKER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    processes = Processes("a_worker", 2)
    yield processes
    processes.close()
    assert not processes.pids


def gone(pid: int) -> bool:
    """Whether a process has ended and was waited for, so that it is no zombie."""
    return not Path(f"/proc/{pid}").exists()


def ended(pid: int) -> bool:
    """Whether a process has ended, also if nobody has waited for it."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_answers_come_back(processes: Processes) -> None:
    """A process answers one question after the other, and what it prints is no answer."""
    assert [processes.ask(["double", number], 30.0) for number in range(5)] == [0, 2, 4, 6, 8]
    assert processes.ask(["print", 3], 30.0) == 3
    assert processes.ask(["double", 3], 30.0) == 6
    assert len(processes.pids) == 1


@pytest.mark.parametrize("question", [["sleep", 60], ["power", 9], ["exit", 0]])
def test_what_does_not_end_is_killed(processes: Processes, question: list[object]) -> None:
    """Also one operation that no exception can interrupt; the next question gets a process of its own."""
    pid = processes.ask(["pid", 0], 30.0)
    with pytest.raises(TookTooLong):
        processes.ask(question, 0.3)
    assert gone(pid)
    assert processes.ask(["double", 4], 30.0) == 8
    assert processes.ask(["pid", 0], 30.0) != pid


def test_memory_is_limited(processes: Processes) -> None:
    """Work that wants more memory than there is for it ends its process, not this one."""
    with pytest.raises(TookTooLong, match="ended"):
        processes.ask(["memory", 2**30], 30.0)
    assert processes.ask(["memory", 2**20], 30.0) == 2**20


def test_many_threads_share_few_processes(processes: Processes) -> None:
    """Eight threads get their own answers from two processes, also while some of those are killed."""
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


def test_closing_ends_what_is_under_way(processes: Processes) -> None:
    """Whoever waits for an answer gets none, nothing is left running, and nothing is started afterwards."""
    pid = processes.ask(["pid", 0], 30.0)
    outcome: list[str] = []

    def ask() -> None:
        try:
            processes.ask(["sleep", 60], 60.0)
        except TookTooLong:
            outcome.append("ended")

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.1)
    processes.close()
    thread.join(timeout=30)
    assert outcome == ["ended"]
    assert gone(pid)
    with pytest.raises(TookTooLong):
        processes.ask(["double", 1], 30.0)


def test_nobody_waits_for_processes_that_are_closed(processes: Processes) -> None:
    """Neither those who ask afterwards nor those whose turn had not come."""
    outcomes: list[str] = []

    def ask() -> None:
        try:
            processes.ask(["sleep", 60], 60.0)
        except TookTooLong:
            outcomes.append("ended")

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    processes.close()
    for thread in threads:
        thread.join(timeout=60)
    assert outcomes == ["ended"] * 6
    with pytest.raises(TookTooLong, match="stopped"):
        processes.ask(["double", 1], 30.0)


def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """A program that is killed leaves no process behind, even one that works on an endless question."""
    (tmp_path / "a_worker.py").write_text(WORKER, encoding="utf-8")
    program = (
        "import sys, threading, time\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from bpac.grading.mathematics.processes import Processes\n"
        "processes = Processes('a_worker', 1)\n"
        "print(processes.ask(['pid', 0], 60.0), flush=True)\n"
        "threading.Thread(target=processes.ask, args=(['power', 9], 0.1)).start()\n"
        "time.sleep(0.2)\n"
        "import os; os.kill(os.getpid(), 9)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    pid = int(ran.stdout)
    end = time.monotonic() + 30
    # Whoever takes over orphans may not wait for them at once.
    while not ended(pid):
        assert time.monotonic() < end, "the worker is still running"
        time.sleep(0.05)


def test_a_fork_gets_processes_of_its_own(processes: Processes) -> None:
    """A child of this program does not read the answers that are meant for its parent."""
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
