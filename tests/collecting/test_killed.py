import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from bpac.testing import Reply, Request, ScriptedServer
from tests.collecting.pairs import adds, arguments, asked_of, bpac, command, number, replies, role

CONCURRENCY = 4
QUESTIONS = 60


class Gate:
    """A script that lets so many requests through and holds the others, however slow the machine is."""

    def __init__(self, admitted: int) -> None:
        self._admitted = admitted
        self._changed = threading.Condition()

    def admit(self, more: int) -> None:
        """Let further requests through."""
        with self._changed:
            self._admitted += more
            self._changed.notify_all()

    def __call__(self, request: Request) -> Reply:
        """The usual answer, once it is let through."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._admitted > 0, timeout=60.0)
            self._admitted -= 1
        return adds(request)


def kept(path: Path) -> set[tuple[int, str]]:
    """The answers that a file holds; none while it has no first line."""
    if not path.exists() or not path.stat().st_size:
        return set()
    return {(int(reply.id.removeprefix("gsm8k-")), reply.role) for reply in replies(path)}


def pairs_of(requests: list[Request]) -> set[tuple[int, str]]:
    """What some requests asked for."""
    return {(number(request), role(request)) for request in requests}


def kill_when(path: Path, words: list[str], answers: int) -> None:
    """Start a command and kill it, as ``kill -9`` does, when so many answers are kept."""
    with subprocess.Popen(command(words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60.0
        while len(kept(path)) < answers:
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_killed_twice(tmp_path: Path) -> None:
    """Killed in the middle and started again, what was kept is never asked again.

    Precisely: after each kill no request is for an answer that the file held at that kill. Only requests that were
    under way at a kill, at most as many as may be at a time, are made once more. In the end every answer is there once.
    """
    path = tmp_path / "answers.jsonl"
    gate = Gate(20)
    with ScriptedServer(gate) as server:
        words = [*arguments(server, tmp_path, QUESTIONS), "--concurrency", str(CONCURRENCY), "--json"]
        kill_when(path, words, 20)
        first, after_first = kept(path), len(server.requests)
        # Requests of the dead, which are still held, are let through too.
        gate.admit(40 + CONCURRENCY)
        kill_when(path, words, 60)
        second, after_second = kept(path), len(server.requests)
        gate.admit(1000)
        finished = bpac(*words)
        assert finished.returncode == 0, finished.stderr
    assert len(first) == 20
    assert 60 <= len(second) <= 60 + CONCURRENCY
    assert not first & pairs_of(server.requests[after_first:])
    assert not second & pairs_of(server.requests[after_second:])
    asked = asked_of(server)
    assert sum(asked.values()) <= 2 * QUESTIONS + 2 * CONCURRENCY
    assert json.loads(finished.stdout)["asked"] == 2 * QUESTIONS - len(second)
    assert len(replies(path)) == len(kept(path)) == 2 * QUESTIONS


def test_a_torn_answer_is_asked_again(tmp_path: Path) -> None:
    """An answer whose line was cut off in the middle is asked for again, and no other."""
    path = tmp_path / "answers.jsonl"
    with ScriptedServer(adds) as server:
        words = [*arguments(server, tmp_path, 5), "--concurrency", "1"]
        assert bpac(*words).returncode == 0
        path.write_bytes(path.read_bytes()[:-30])
        assert bpac(*words).returncode == 0
    assert sorted(asked_of(server).values()) == [*[1] * 9, 2]
    assert asked_of(server)[4, "expert"] == 2


def test_two_collectors(tmp_path: Path) -> None:
    """While one collects into a file, another is refused with exit code 1, and asks nothing."""
    gate = Gate(3)
    with ScriptedServer(gate) as server:
        words = [*arguments(server, tmp_path, QUESTIONS), "--concurrency", "2"]
        with subprocess.Popen(command(words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
            while not kept(tmp_path / "answers.jsonl"):
                assert first.poll() is None
                time.sleep(0.01)
            second = bpac(*words)
            gate.admit(1000)
            assert first.wait() == 0
    assert second.returncode == 1
    assert "being written by another process" in second.stderr
    assert set(asked_of(server).values()) == {1}


def test_stopped_by_the_keyboard(tmp_path: Path) -> None:
    """Ctrl-C ends a run with exit code 1 and one line, no trace, and keeps what there is."""
    path = tmp_path / "answers.jsonl"
    gate = Gate(3)
    with ScriptedServer(gate) as server:
        # Whoever starts tests in the background makes them, and their children, deaf to Ctrl-C.
        heard = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        heard += "from bpac.cli.main import main; sys.exit(main(sys.argv[1:]))"
        words = [sys.executable, "-c", heard, *arguments(server, tmp_path, QUESTIONS)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            while not kept(path):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            try:
                _, complaints = process.communicate(timeout=30.0)
            finally:
                process.kill()
        gate.admit(1000)
    assert process.returncode == 1
    assert complaints.rstrip().endswith("bpac: stopped")
    assert "Traceback" not in complaints
    assert 0 < len(kept(path)) <= 3
