"""The gateway of a demo: the real one, in its own process."""

import json
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from bpac.demo.directory import ROUTE, DemoDirectory
from bpac.errors import Unavailable
from bpac.gateway.games.shown.status import GameStatus
from bpac.local.server import open_directly

# Seconds until it must have started, become idle, and ended.
START, IDLE, END = 60.0, 20.0, 20.0


class GatewayProcess:
    """``bpac serve``, running inside the ``with`` block.

    Parameters
    ----------
    directory: where its configuration is and its log is written.
    port: the port that it listens on.
    """

    def __init__(self, directory: DemoDirectory, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.address}/v1"

    @property
    def dashboard(self) -> str:
        """The address of the dashboard."""
        return f"{self.address}/dashboard"

    def __enter__(self) -> Self:
        with self._directory.log.open("wb") as log:
            self._process = self._started(log, self._directory.config)
        try:
            self._wait("/readyz", START, "was not ready")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the process; nothing happens if it was stopped before."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=END)
        except BaseException as error:
            process.kill()
            process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):  # such as Ctrl-C while waiting
                raise

    def status(self, route: str = ROUTE) -> GameStatus:
        """The status of the only game of a route (default: the pair's)."""
        (game,) = json.loads(self._get("/v1/status"))["routes"][route]
        return GameStatus.from_json(route, game)

    def wait_until_idle(self) -> None:
        """Wait until no request and no audit is in progress."""
        self._wait("/metrics", IDLE, "was still busy", contains=b"\nbpac_in_flight 0.0\n")

    def failure(self, what: str) -> Unavailable:
        """An error that says what went wrong, whether the gateway is still running, and where its log is."""
        code = None if self._process is None else self._process.poll()
        ended = "" if code is None else f"; its process ended with exit code {code}"
        lines = self._directory.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        log = f"its log {self._directory.log} " + (f"ends with: {lines[-1]}" if lines else "is empty")
        return Unavailable(f"the gateway {what}{ended}; {log}")

    @staticmethod
    def _started(log: IO[bytes], config: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "bpac.demo.gateway_child", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,  # Ctrl-C reaches only this process, which then stops the gateway
        )

    def _wait(self, path: str, timeout: float, otherwise: str, contains: bytes = b"") -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise self.failure("is not running")
            try:
                if contains in self._get(path):
                    return
            except OSError:  # not listening yet, or not ready
                pass
            time.sleep(0.05)
        raise self.failure(f"{otherwise} after {timeout:g} seconds")

    def _get(self, path: str) -> bytes:
        with open_directly(f"{self.address}{path}", timeout=10.0) as response:
            body: bytes = response.read()
            return body
