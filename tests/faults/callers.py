"""Callers that ask all the time, and remember what they got and when."""

import asyncio
import threading
import time
from collections.abc import Sequence
from itertools import count
from types import TracebackType
from typing import NamedTuple

import aiohttp

from tests.gateway.configured import wait_for
from tests.gateway.law import Question

# Seconds between two requests of a caller, and until a caller gives up.
PAUSE, PATIENCE = 0.03, 20.0


class Got(NamedTuple):
    """What a caller got.

    Parameters
    ----------
    url: who answered.
    at: when, on the monotonic clock.
    headers: of the answer.
    """

    url: str
    at: float
    headers: dict[str, str]

    @property
    def decision(self) -> str:
        """The id of the decision; empty if the answer has none."""
        found = self.headers.get("x-bpac-decision", "")
        return found if found.startswith("dec-") else ""

    @property
    def kept(self) -> bool:
        """Whether it was the draft."""
        return self.headers["x-bpac-answered-by"] == "draft"


class Callers:
    """Callers in a thread of their own, from the beginning of a block to its end.

    Parameters
    ----------
    urls: the gateways.
    at_once: callers of each.

    Attributes
    ----------
    got: all answers.
    failed: requests that got none.
    """

    def __init__(self, urls: Sequence[str], at_once: int = 6) -> None:
        self._urls = urls
        self._at_once = at_once
        self._numbers = count()
        self._asks, self._stops = threading.Event(), False
        self._under_way = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.got: list[Got] = []
        self.failed = 0

    def __enter__(self) -> "Callers":
        self._asks.set()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stops = True
        self._thread.join()

    def pause(self) -> None:
        """Ask nothing more, and wait for all answers."""
        self._asks.clear()
        wait_for(lambda: not self._under_way, PATIENCE + 5.0)

    def go_on(self) -> None:
        """Ask again."""
        self._asks.set()

    def decided_since(self, moment: float, url: str, after_game: int = 0, least: int = 3) -> bool:
        """Whether a gateway has answered some requests since a moment by decisions of later games than one."""
        found = 0
        for one in reversed(self.got):
            if one.at < moment:
                break
            found += one.url == url and one.decision != "" and int(one.decision.split("-")[1]) > after_game
        return found >= least

    async def _run(self) -> None:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=PATIENCE)
        ) as session:
            await asyncio.gather(*(self._ask(session, url) for url in self._urls for _ in range(self._at_once)))

    async def _ask(self, session: aiohttp.ClientSession, url: str) -> None:
        while not self._stops:
            if not self._asks.is_set():
                await asyncio.sleep(0.005)
                continue
            self._under_way += 1
            try:
                body = Question(next(self._numbers)).body
                async with session.post(f"{url}/v1/chat/completions", json=body) as response:
                    await response.read()
                    headers = {name.lower(): value for name, value in response.headers.items()}
                if response.status == 200:
                    self.got.append(Got(url, time.monotonic(), headers))
                else:
                    self.failed += 1
            except (aiohttp.ClientError, OSError, TimeoutError):
                self.failed += 1
            finally:
                self._under_way -= 1
            await asyncio.sleep(PAUSE)
