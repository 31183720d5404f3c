"""Worker processes that can be killed, for work on untrusted text that may never end or may use all memory.

1. A worker is a Python process that reads one question per line and writes one answer per line, both as JSON.
2. It limits its own memory and, for each question, its processor time, so it ends even if its parent has died.
3. The caller waits up to a time limit. Then the worker is killed, and the next question starts a new one.
4. It is started by ``exec``, never by a bare ``fork``, which would break with threads and event loops. It ends when its
   standard input is closed.
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

# A worker imports a computer algebra system when it starts, which is slow on a busy machine.
START_SECONDS = 120.0
_READY = b'"ready"\n'


class TookTooLong(Exception):
    """The work exceeded its limit of time or memory, or its process died."""


class WorkerProcesses:
    """A pool of worker processes, started when first needed and replaced after one was killed.

    Parameters
    ----------
    module: the module that a worker runs; it must call ``serve_lines``.
    count: the largest number of workers (default: 2); callers wait while all of them are busy.
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
        """A worker's answer, or ``TookTooLong``. This blocks: in an event loop, call it in a thread.

        Parameters
        ----------
        question: the question for the worker, as JSON values.
        seconds: time limit of the answer, counted from when the worker receives the question.
        """
        with self._lock:
            if self._owner != os.getpid():  # after a fork, the existing workers belong to the parent
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
        """End every worker permanently; current and later calls of ``ask`` raise ``TookTooLong``."""
        with self._lock:
            self._closed = True
            alive = list(self._alive) if self._owner == os.getpid() else []
        for worker in alive:
            worker.stop()
        # A busy worker is cleaned up by the thread that waits for it; idle workers are cleaned up here.
        places = 0
        with contextlib.suppress(queue.Empty):
            while True:
                self._end(self._idle.get_nowait())
                places += 1
        for _ in range(places):
            self._idle.put(None)

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of the running workers."""
        with self._lock:
            return frozenset(worker.pid for worker in self._alive)

    def _replaced(self, dead: "_Worker | None") -> "_Worker":
        self._end(dead)
        with self._lock:
            if self._closed:
                raise TookTooLong("the worker processes were closed")
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
        # The same packages as in this process, but never modules from the current folder.
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
            # This does not block: questions have a length limit far below the size of a pipe's buffer.
            self._process.stdin.write(json.dumps([seconds, question]).encode() + b"\n")
        except BrokenPipeError:
            raise TookTooLong("a grading process ended") from None
        return json.loads(self._line(seconds))

    def stop(self) -> None:
        """Kill the process and wait for its end; does nothing if it has already ended."""
        self._process.kill()
        self._process.wait()

    def clear(self) -> None:
        """Close the pipes; only for the thread that holds the worker, since another one may still read from them."""
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
                raise TookTooLong("a grading process ended: it exceeded its limit of memory or processor time")
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line + b"\n"


def serve_lines(answer: Callable[[Any], Any], memory: int) -> None:
    """Answer questions from standard input until it ends; called in the worker process.

    Parameters
    ----------
    answer: the function that answers one question.
    memory: limit of the process's memory in bytes.
    """
    import resource  # noqa: PLC0415  # not available on every system, and only the worker needs it

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which may still need answers
    os.nice(5)  # serving requests is more urgent than grading
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    # Output printed by a library must not be read as an answer.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    replies.write(_READY)
    for line in sys.stdin.buffer:
        seconds, question = json.loads(line)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, hard_limit))
        replies.write(json.dumps(answer(question)).encode() + b"\n")


def closed_at_exit(processes: WorkerProcesses) -> WorkerProcesses:
    """The same processes; they are closed when this program exits."""
    atexit.register(processes.close)
    return processes
