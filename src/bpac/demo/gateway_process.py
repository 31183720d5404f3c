"""The gateway of a demo: the real one, in a process of its own."""

import json
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from bpac.demo.place import ROUTE, Place
from bpac.errors import Unavailable
from bpac.gateway.games.status import GameStatus
from bpac.local.server import open_directly

# Seconds: to start, to come to rest, to end.
START, REST, END = 60.0, 20.0, 20.0


class GatewayProcess:
    """``bpac serve`` for as long as the ``with`` block lasts.

    Parameters
    ----------
    place: where its configuration is, and its log goes.
    port: where it listens.
    """

    def __init__(self, place: Place, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self._place = place
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def base_url(self) -> str:
        """What an OpenAI client needs."""
        return f"{self.address}/v1"

    @property
    def dashboard(self) -> str:
        """What a browser needs."""
        return f"{self.address}/dashboard"

    def __enter__(self) -> Self:
        with self._place.log.open("wb") as log:
            self._process = self._started(log, self._place.config)
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
        """Stop; nothing happens if it was stopped before."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=END)
        except BaseException as error:
            process.kill()
            process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):  # Ctrl-C, say: in a hurry
                raise

    def status(self) -> GameStatus:
        """Where its one game stands."""
        (game,) = json.loads(self._page("/v1/status"))["routes"][ROUTE]
        return GameStatus.from_json(ROUTE, game)

    def rest(self) -> None:
        """Wait until nothing is under way any more: no request, and no audit behind one."""
        self._wait("/metrics", REST, "was still busy", contains=b"\nbpac_in_flight 0.0\n")

    def complaint(self, what: str) -> Unavailable:
        """An error that says what is wrong, whether the gateway lives, and where to read more."""
        code = None if self._process is None else self._process.poll()
        ended = "" if code is None else f"; its process ended with exit code {code}"
        words = self._place.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = f": {words[-1]}" if words else ""
        return Unavailable(f"the gateway {what}{ended}; its log, {self._place.log}, ends with{last or ' nothing'}")

    @staticmethod
    def _started(log: IO[bytes], config: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "bpac.demo.gateway_child", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us; we stop the gateway
        )

    def _wait(self, page: str, patience: float, otherwise: str, contains: bytes = b"") -> None:
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise self.complaint("is not running")
            try:
                if contains in self._page(page):
                    return
            except OSError:  # not listening yet, or not ready
                pass
            time.sleep(0.05)
        raise self.complaint(f"{otherwise} after {patience:g} seconds")

    def _page(self, path: str) -> bytes:
        with open_directly(f"{self.address}{path}", timeout=10.0) as response:
            page: bytes = response.read()
            return page
