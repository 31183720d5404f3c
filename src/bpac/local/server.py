"""A server for the local model, or for any other GGUF file, in a separate process."""

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
from bpac.local.efforts import CHAT_TEMPLATE
from bpac.local.server_process import READY

MODEL = Path(__file__).with_name("model.gguf")
LAST_PORT = 65_535
# llama.cpp is linked with a library that Debian does not install by itself.
OPENMP = "install the library libgomp (on Debian: apt-get install libgomp1)."

# Requests to this machine must not go through a proxy.
open_directly = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@dataclasses.dataclass(slots=True)
class LocalServer:
    """An OpenAI-compatible server of one model on the loopback interface, which runs inside the ``with`` block.

    A request with ``"chat_template_kwargs": {"enable_thinking": false}`` gets a direct answer (the draft), a request
    with ``true`` an answer after thinking (the expert). With ``{"reasoning_effort": "low"}`` there it thinks in short
    steps (see ``efforts.py``).

    Parameters
    ----------
    model: the GGUF file of the model (default: the model in this package).
    name: the name of the model in replies (default: ``bpac-local``).
    slots: number of concurrent requests (default: 4).
    context: largest number of tokens of a chat, including the answer (default: 512).
    threads: number of processor threads; more than one can be slower on a busy machine (default: 1).
    temperature: sampling temperature of requests that do not set one (default: 0, greedy decoding).
    port: port to listen on (default: 0, any free port).
    patience: seconds to wait until the server has started (default: 60).

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
    _error_output: IO[bytes] | None = dataclasses.field(default=None, init=False, repr=False)
    _address: str = dataclasses.field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        for name, least in (("slots", 1), ("context", 1), ("threads", 1), ("temperature", 0), ("port", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)!r}")
        if self.port > LAST_PORT:
            raise InputError(f"port must be at most {LAST_PORT}, got {self.port}; 0 means any free port")

    @property
    def address(self) -> str:
        """The address of llama.cpp's own endpoints, such as ``/health``, ``/tokenize`` and ``/slots``."""
        if not self._address:
            raise InputError("the server is not running: use  with LocalServer() as server: …")
        return self._address

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.address}/v1"

    @property
    def pid(self) -> int | None:
        """The id of the server's process; none if it is not running."""
        return self._process.pid if self._process else None

    def __enter__(self) -> "LocalServer":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and return when it answers requests."""
        if self._process is not None:
            raise InputError("the server is already running")
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtra("xllamacpp", "local")
        if not Path(self.model).is_file():
            raise InputError(f"there is no model file {self.model}: give a GGUF file, or none for {MODEL.name}")
        self._check_port()
        fields = ("name", "slots", "context", "threads", "temperature", "port")
        settings = {"model": str(self.model), **{name: getattr(self, name) for name in fields}}
        if Path(self.model) == MODEL:  # other models have their own dials, or none
            settings["chat_template"] = CHAT_TEMPLATE
        self._error_output = tempfile.TemporaryFile()  # noqa: SIM115  (closed by stop)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bpac.local.server_process", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._error_output,
            text=True,
            start_new_session=True,  # Ctrl-C is handled by this process, which stops the child
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
            # With this option, as in servers, only a listening server blocks a port, not a recently closed connection.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", self.port))
            except OSError as error:
                raise BpacError(
                    f"port {self.port} cannot be used ({error.strerror}): choose another, or 0 for any free port"
                ) from error

    def stop(self) -> None:
        """Stop the server; does nothing if it is not running."""
        process, self._process, self._address = self._process, None, ""
        if process is not None:
            process.kill()  # the server has no state that could be lost
            process.communicate()
        if self._error_output is not None:
            self._error_output.close()
            self._error_output = None

    def _wait(self, deadline: float) -> str:
        lines: list[str] = []
        reader = threading.Thread(target=self._read_address, args=(lines,), daemon=True)
        reader.start()
        reader.join(max(0.0, deadline - time.monotonic()))
        if not lines:
            error = self._last_error()
            remedy = OPENMP if "libgomp" in error else "is it a GGUF file?"
            raise Unavailable(f"the server for {self.model} did not start; {remedy} {error}")
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            try:
                with open_directly(f"{lines[0]}/health", timeout=5.0):
                    return lines[0]
            except (urllib.error.URLError, OSError):  # still loading, or not listening yet
                time.sleep(0.05)
        if time.monotonic() < deadline:
            raise Unavailable(f"the server for {self.model} ended during its start: {self._last_error()}")
        raise Unavailable(f"the server for {self.model} was not ready after {self.patience:g} seconds")

    def _read_address(self, lines: list[str]) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(READY):
                lines.append(line.removeprefix(READY).strip())
                return

    def _last_error(self) -> str:
        assert self._error_output is not None
        self._error_output.seek(0)
        lines = self._error_output.read().decode(errors="replace").strip().splitlines()
        # The last line of a traceback is the error.
        return lines[-1].strip() if lines else f"no message for {self.patience:g} seconds"
