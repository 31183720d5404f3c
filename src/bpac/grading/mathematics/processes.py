"""Processes that can be killed: for work on foreign text that no exception can stop and that may take all memory.

1. A worker is a Python process that reads one question a line and writes one answer a line, both as JSON.
2. It limits its memory and, for each question, its processor time, so it ends even if nobody is left to kill it.
3. Whoever asks waits for so many seconds; then the worker is killed and another one starts with the next question.
4. It is started by ``exec``, never by a bare ``fork``, so threads and event loops do no harm; it ends with its input.
"""

import atexit
import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

# Starting means importing a computer algebra system, which is slow on a busy machine.
START_SECONDS = 120.0
_READY = b'"ready"\n'


class TookTooLong(Exception):
    """The work was not done within its limits of time and memory, or its process died."""


class Processes:
    """A few worker processes, started when they are first needed and again after one was killed.

    Parameters
    ----------
    module: the module that a worker runs, which calls ``serve_lines``.
    count: how many there are at most; further callers wait for their turn.
    """

    def __init__(self, module: str, count: int = 2) -> None:
        self._module = module
        self._count = count
        self._lock = threading.Lock()
        self._open()

    def _open(self) -> None:
        self._owner = os.getpid()
        self._closed = False
        self._alive: set[_Worker] = set()
        self._idle: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        for _ in range(self._count):
            self._idle.put(None)

    def ask(self, question: Any, seconds: float) -> Any:
        """A worker's answer, or ``TookTooLong``. It blocks: in an event loop, call it in a thread.

        Parameters
        ----------
        question: what the worker is asked, as JSON values.
        seconds: how long the answer may take, once the worker works on it.
        """
        with self._lock:
            if self._owner != os.getpid():  # after a fork, the workers are the parent's
                self._open()
            idle = self._idle
        worker = idle.get()
        try:
            if worker is None or not worker.running:
                worker = self._replaced(worker)
            return worker.ask(question, seconds)
        except BaseException:
            self._end(worker)
            worker = None
            raise
        finally:
            idle.put(worker)

    def close(self) -> None:
        """End every worker, for good; what is asked now or later raises ``TookTooLong``."""
        with self._lock:
            self._closed = True
            alive = list(self._alive) if self._owner == os.getpid() else []
        for worker in alive:
            worker.stop()
        # Whoever waits for a worker sees its end and clears it away; the others are cleared away here.
        places = 0
        with contextlib.suppress(queue.Empty):
            while True:
                self._end(self._idle.get_nowait())
                places += 1
        for _ in range(places):
            self._idle.put(None)

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of the workers that run."""
        with self._lock:
            return frozenset(worker.pid for worker in self._alive)

    def _replaced(self, dead: "_Worker | None") -> "_Worker":
        self._end(dead)
        with self._lock:
            if self._closed:
                raise TookTooLong("grading has stopped")
            worker = _Worker(self._module)
            self._alive.add(worker)
        try:
            worker.wait_until_ready()
        except BaseException:
            self._end(worker)
            raise
        return worker

    def _end(self, worker: "_Worker | None") -> None:
        if worker is not None:
            worker.stop()
            worker.clear()
            with self._lock:
                self._alive.discard(worker)


class _Worker:
    """One process and the pipes to it."""

    def __init__(self, module: str) -> None:
        # The packages that are found here, and never those of the current folder.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-B", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": path},
        )
        self._received = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        if self._line(START_SECONDS) != _READY:
            raise TookTooLong("a grading process did not start")

    def ask(self, question: Any, seconds: float) -> Any:
        assert self._process.stdin is not None
        try:
            # Shorter than a pipe's buffer by far, because questions have a length limit: this does not block.
            self._process.stdin.write(json.dumps([seconds, question]).encode() + b"\n")
        except BrokenPipeError:
            raise TookTooLong("a grading process ended") from None
        return json.loads(self._line(seconds))

    def stop(self) -> None:
        """Kill the process and wait for its end, so that none is left behind; again does nothing."""
        self._process.kill()
        self._process.wait()

    def clear(self) -> None:
        """Close the pipes; only for whoever has the worker, since another thread may still read from them."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _line(self, seconds: float) -> bytes:
        assert self._process.stdout is not None
        end = time.monotonic() + seconds
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while b"\n" not in self._received:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000.0):
                raise TookTooLong(f"a grading process did not answer within {seconds:g} s")
            part = os.read(descriptor, 65_536)
            if not part:
                raise TookTooLong("a grading process ended: it reached its limit of memory or processor time")
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line + b"\n"


def serve_lines(answer: Callable[[Any], Any], memory: int) -> None:
    """Answer questions from standard input until it ends; called in the worker process.

    Parameters
    ----------
    answer: answers one question.
    memory: how many bytes of memory may be used.
    """
    import resource  # noqa: PLC0415  # not on every system, and only the worker needs it

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which may still want answers
    os.nice(5)  # callers who wait for an answer go first
    with contextlib.suppress(ValueError, OSError):  # macOS knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    # What a library prints must not be taken for an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    replies.write(_READY)
    for line in sys.stdin.buffer:
        seconds, question = json.loads(line)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, most))
        replies.write(json.dumps(answer(question)).encode() + b"\n")


def closed_at_exit(processes: Processes) -> Processes:
    """The same processes, which end with this program."""
    atexit.register(processes.close)
    return processes
