"""A server for the local model, or for any other GGUF file, in a process of its own."""

import dataclasses
import importlib.util
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import IO

from bpac.errors import BpacError, InputError, MissingExtra, Unavailable
from bpac.local.server_process import READY

MODEL = Path(__file__).with_name("model.gguf")
LAST_PORT = 65_535

# A proxy for the rest of the world has no way to this machine.
open_directly = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@dataclasses.dataclass(slots=True)
class LocalServer:
    """An OpenAI-compatible server of one model on a loopback port, for as long as the ``with`` block lasts.

    A request chooses with ``"chat_template_kwargs": {"enable_thinking": false}`` between a draft and, with ``true``,
    an expert.

    Parameters
    ----------
    model: a GGUF file; the model that comes with this package if not given.
    name: what the model is called in replies.
    slots: requests answered at the same time.
    context: the longest chat of a request, in tokens, answer included.
    threads: processor threads; more than one slow each other down on a busy machine.
    temperature: how freely tokens are drawn where a request does not say; 0 is the likeliest token always.
    port: 0 for any free one.
    patience: seconds to wait for the start.

    >>> LocalServer(slots=0)
    Traceback (most recent call last):
    ...
    bpac.errors.InputError: slots must be at least 1, got 0
    """

    model: Path = MODEL
    name: str = "bpac-local"
    slots: int = 4
    context: int = 512
    threads: int = 1
    temperature: float = 0.0
    port: int = 0
    patience: float = 60.0
    _process: subprocess.Popen[str] | None = dataclasses.field(default=None, init=False, repr=False)
    _complaints: IO[bytes] | None = dataclasses.field(default=None, init=False, repr=False)
    _address: str = dataclasses.field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        for name, least in (("slots", 1), ("context", 1), ("threads", 1), ("temperature", 0), ("port", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)!r}")
        if self.port > LAST_PORT:
            raise InputError(f"port must be at most {LAST_PORT}, got {self.port}; 0 is any free one")

    @property
    def address(self) -> str:
        """Where llama.cpp's own endpoints are, such as ``/health``, ``/tokenize`` and ``/slots``."""
        if not self._address:
            raise InputError("the server is not running: use it as  with LocalServer() as server: …")
        return self._address

    @property
    def base_url(self) -> str:
        """What an OpenAI client needs."""
        return f"{self.address}/v1"

    @property
    def pid(self) -> int | None:
        """The process that serves, while there is one."""
        return self._process.pid if self._process else None

    def __enter__(self) -> "LocalServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start, and return when requests are answered."""
        if self._process is not None:
            raise InputError("the server is running already")
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtra("xllamacpp", "local")
        if not Path(self.model).is_file():
            raise InputError(f"there is no model file {self.model}: give a GGUF file, or none for {MODEL.name}")
        self._check_port()
        fields = ("name", "slots", "context", "threads", "temperature", "port")
        settings = {"model": str(self.model), **{name: getattr(self, name) for name in fields}}
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  (closed by stop)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bpac.local.server_process", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; we stop the child
        )
        try:
            self._address = self._wait(time.monotonic() + self.patience)
        except BaseException:
            self.stop()
            raise

    def _check_port(self) -> None:
        if not self.port:
            return
        with socket.socket() as tried:
            # As servers do: connections that ended a moment ago take no port. A server that listens does.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", self.port))
            except OSError as error:
                raise BpacError(
                    f"port {self.port} cannot be had ({error.strerror}): give another, or 0 for any free one"
                ) from error

    def stop(self) -> None:
        """Stop; nothing happens if it was stopped before."""
        process, self._process, self._address = self._process, None, ""
        if process is not None:
            process.kill()  # it keeps nothing that could be lost
            process.communicate()
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None

    def _wait(self, deadline: float) -> str:
        lines: list[str] = []
        reader = threading.Thread(target=self._read_address, args=(lines,), daemon=True)
        reader.start()
        reader.join(max(0.0, deadline - time.monotonic()))
        if not lines:
            raise Unavailable(f"the server for {self.model} did not start; is it a GGUF file? {self._last_words()}")
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            try:
                with open_directly(f"{lines[0]}/health", timeout=5.0):
                    return lines[0]
            except (urllib.error.URLError, OSError):  # still loading, or not listening yet
                time.sleep(0.05)
        if time.monotonic() < deadline:
            raise Unavailable(f"the server for {self.model} ended while it started: {self._last_words()}")
        raise Unavailable(f"the server for {self.model} was not healthy after {self.patience:g} seconds")

    def _read_address(self, lines: list[str]) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(READY):
                lines.append(line.removeprefix(READY).strip())
                return

    def _last_words(self) -> str:
        assert self._complaints is not None
        self._complaints.seek(0)
        words = self._complaints.read().decode(errors="replace").strip().splitlines()
        # The last line says what went wrong; those before it, where.
        return words[-1].strip() if words else f"nothing heard for {self.patience:g} seconds"
