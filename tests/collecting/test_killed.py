import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from bpac.testing import Reply, Request, ScriptedServer
from tests.collecting.pairs import adds, arguments, bpac, command, number, recorded_answers, request_counts, role

CONCURRENCY = 4
QUESTIONS = 60


class Gate:
    """A script that answers a number of requests and makes the others wait, independent of the machine's speed."""

    def __init__(self, admitted: int) -> None:
        self._admitted = admitted
        self._changed = threading.Condition()

    def admit(self, more: int) -> None:
        """Allow further requests to be answered."""
        with self._changed:
            self._admitted += more
            self._changed.notify_all()

    def __call__(self, request: Request) -> Reply:
        """The usual answer, once it is allowed."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._admitted > 0, timeout=60.0)
            self._admitted -= 1
        return adds(request)


def recorded(path: Path) -> set[tuple[int, str]]:
    """The answers in a file; none while it has no first line."""
    if not path.exists() or not path.stat().st_size:
        return set()
    return {(int(reply.id.removeprefix("gsm8k-")), reply.role) for reply in recorded_answers(path)}


def pairs_of(requests: list[Request]) -> set[tuple[int, str]]:
    """The questions and roles of requests."""
    return {(number(request), role(request)) for request in requests}


def kill_when(path: Path, words: list[str], answers: int) -> None:
    """Start a command and kill it, as ``kill -9`` does, when a number of answers is recorded."""
    with subprocess.Popen(command(words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60.0
        while len(recorded(path)) < answers:
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_a_killed_run_continues_without_repeating_answers(tmp_path: Path) -> None:
    """A run that is killed twice never requests an answer again that was already in the file.

    After each kill, no request is for an answer that the file contained at that time. Only the requests in flight at a
    kill, at most ``--concurrency`` of them, are sent again. In the end every answer is in the file once.
    """
    path = tmp_path / "answers.jsonl"
    gate = Gate(20)
    with ScriptedServer(gate) as server:
        words = [*arguments(server, tmp_path, QUESTIONS), "--concurrency", str(CONCURRENCY), "--json"]
        kill_when(path, words, 20)
        first, after_first = recorded(path), len(server.requests)
        # The requests of the killed process still wait and use up some of these.
        gate.admit(40 + CONCURRENCY)
        kill_when(path, words, 60)
        second, after_second = recorded(path), len(server.requests)
        gate.admit(1000)
        finished = bpac(*words)
        assert finished.returncode == 0, finished.stderr
    assert len(first) == 20
    assert 60 <= len(second) <= 60 + CONCURRENCY
    assert not first & pairs_of(server.requests[after_first:])
    assert not second & pairs_of(server.requests[after_second:])
    asked = request_counts(server)
    assert sum(asked.values()) <= 2 * QUESTIONS + 2 * CONCURRENCY
    assert json.loads(finished.stdout)["asked"] == 2 * QUESTIONS - len(second)
    assert len(recorded_answers(path)) == len(recorded(path)) == 2 * QUESTIONS


def test_an_incomplete_answer_is_requested_again(tmp_path: Path) -> None:
    """Only the answer whose line was cut off is requested again."""
    path = tmp_path / "answers.jsonl"
    with ScriptedServer(adds) as server:
        words = [*arguments(server, tmp_path, 5), "--concurrency", "1"]
        assert bpac(*words).returncode == 0
        path.write_bytes(path.read_bytes()[:-30])
        assert bpac(*words).returncode == 0
    assert sorted(request_counts(server).values()) == [*[1] * 9, 2]
    assert request_counts(server)[4, "expert"] == 2


def test_two_processes_cannot_write_one_file(tmp_path: Path) -> None:
    """While one process writes a file, another is refused with exit code 1 and sends no requests."""
    gate = Gate(3)
    with ScriptedServer(gate) as server:
        words = [*arguments(server, tmp_path, QUESTIONS), "--concurrency", "2"]
        with subprocess.Popen(command(words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
            while not recorded(tmp_path / "answers.jsonl"):
                assert first.poll() is None
                time.sleep(0.01)
            second = bpac(*words)
            gate.admit(1000)
            assert first.wait() == 0
    assert second.returncode == 1
    assert "being written by another process" in second.stderr
    assert set(request_counts(server).values()) == {1}


def test_ctrl_c_ends_a_run_and_keeps_its_answers(tmp_path: Path) -> None:
    """Ctrl-C ends a run with exit code 1 and a message without a traceback; the answers are kept."""
    path = tmp_path / "answers.jsonl"
    gate = Gate(3)
    with ScriptedServer(gate) as server:
        # If the tests run in the background, they and their children ignore Ctrl-C by default.
        heard = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        heard += "from bpac.cli.program import main; sys.exit(main(sys.argv[1:]))"
        words = [sys.executable, "-c", heard, *arguments(server, tmp_path, QUESTIONS)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            while not recorded(path):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            try:
                _, complaints = process.communicate(timeout=60.0)
            finally:
                process.kill()
        gate.admit(1000)
    assert process.returncode == 1
    assert complaints.rstrip().endswith("bpac: stopped")
    assert "Traceback" not in complaints
    assert 0 < len(recorded(path)) <= 3
