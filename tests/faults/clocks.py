"""Gateways and a Redis server whose clocks can be set."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from email.utils import parsedate_to_datetime
from pathlib import Path

from tests.faults.lives import Lives
from tests.faults.shared import UNDER_WAY, SharedScene

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


class Clock:
    """The clock of some processes, which libfaketime reads from a file.

    Parameters
    ----------
    file: the file.
    more: other libraries that the processes need loaded before their own.
    """

    def __init__(self, file: Path, *more: str) -> None:
        assert FAKETIME.exists(), "libfaketime is missing: make faults installs it, or apt-get install faketime"
        self._file = file
        self.set(0)
        self.variables = {
            "LD_PRELOAD": " ".join([str(FAKETIME), *more]),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, hours: int) -> None:
        """Let it be that many hours ahead of the true time."""
        self._file.write_text(f"{hours:+d}h")


class ClockScene(SharedScene):
    """Gateways and Redis whose clocks can be set, with libfaketime, those of the gateways apart from that of Redis.

    Parameters
    ----------
    directory: for files.
    """

    def __init__(self, directory: Path) -> None:
        self._clock = Clock(directory / "clock")
        super().__init__(directory, Lives(self._clock.variables), 2, ("--appendonly", "yes"))
        # libfaketime cannot begin within jemalloc, which looks at the clock when it begins: libc allocates instead.
        self._redis_clock = Clock(directory / "clock of redis", "libc.so.6")
        self._of_redis = self._redis_clock.variables

    def open(self) -> None:
        """Start everything."""
        self.stack.enter_context(closing(self._lives))
        super().open()

    def faults(self) -> Sequence[tuple[str, Callable[[], float]]]:
        """Clocks go wrong."""
        return [
            ("clocks of the gateways jump, forwards or back", self.jump),
            ("clock of Redis jumps, forwards or back", self.jump_of_redis),
        ]

    def everything(self) -> Sequence[tuple[str, Callable[[], float]]]:
        """All that can happen to gateways, clocks included."""
        return [*SharedScene.faults(self), *self.faults()]

    def _hours(self) -> int:
        return self.random.choice([-1, 1]) * self.random.randint(1, 300)

    def jump(self) -> float:
        """The clock of the gateways is up to days off."""
        self._clock.set(hours := self._hours())
        time.sleep(1.1)  # until it is read
        began = time.monotonic()
        back = self.wait_for_decisions(self.urls, began)
        shown = parsedate_to_datetime(self.callers.got[-1].headers["date"]).timestamp()
        assert abs(shown - time.time() - 3600 * hours) < 60, "the clock was not set"
        return back - began

    def jump_of_redis(self) -> float:
        """The clock of Redis is up to days off."""
        self._redis_clock.set(hours := self._hours())
        began = time.monotonic()
        shown = int(self.redis.command("TIME").splitlines()[2])
        assert abs(shown - time.time() - 3600 * hours) < 60, "the clock was not set"
        return self.wait_for_decisions(self.urls, began + UNDER_WAY) - began
