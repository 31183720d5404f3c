"""The connection of a front to the owner of the journals: it is made again whenever it ends.

1. ``ask`` waits for a reply, and for the connection if there is none, together at most ``PATIENCE`` seconds. Then the
   request fails like one that finds the store failed: status 503, and nothing was served.
2. When the connection ends, all questions under way fail with ``OwnerLost``. Whether the owner has done what they asked
   for is not known; whatever it was, it counts as cut off there, so nothing of it may be used here.
3. A reply that comes after its question was given up is passed to a function that undoes what can be undone.
"""

import asyncio
import logging
import math
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.workers.front.owner_errors import REMEDY, OwnerLate, OwnerLost, error_in
from bpac.gateway.workers.link import Message, ProcessLink
from bpac.gateway.workers.messages import OK

log = logging.getLogger("bpac.gateway")

# Seconds that a request waits for the owner, while it is started again for example.
PATIENCE = 10.0
# Seconds between two attempts to connect, and between two looks at questions that wait too long.
PAUSE, LOOK_EVERY = 0.1, 0.25
# When a question was asked that nobody waits for any more; its reply may still come.
GIVEN_UP = math.inf

# What to do with a reply: the value, or the error.
Take = Callable[[Any, Exception | None], None]


class _Question(NamedTuple):
    asked: float
    take: Take
    late: Callable[[Any], None] | None


class OwnerLink:
    """The connection of a front to the owner.

    Parameters
    ----------
    path: the Unix socket of the owner.
    hello: the first message; its reply is passed to ``welcome``.
    welcome: called with what the owner says first, on each new connection, before anything else is asked on it.
    told: called with what the owner sends unasked: its kind and its values.
    """

    def __init__(
        self,
        path: str,
        hello: Callable[[], list[Any]],
        welcome: Callable[[dict[str, Any]], Awaitable[None]],
        told: Callable[[str, list[Any]], None],
    ) -> None:
        self._path = path
        self._hello = hello
        self._welcome = welcome
        self._told = told
        self._link: ProcessLink | None = None
        self._ready: asyncio.Event = asyncio.Event()
        self._questions: dict[int, _Question] = {}
        self._last = 0
        self._keeper: asyncio.Task[None] | None = None
        self._rate = LogRate()
        self.connections = 0

    async def start(self) -> None:
        """Connect, and keep the connection; returns when the owner has answered for the first time."""
        self._loop = asyncio.get_running_loop()
        self._keeper = asyncio.create_task(self._keep())
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({ready, self._keeper}, return_when=asyncio.FIRST_COMPLETED)
        if self._keeper.done():
            ready.cancel()
            await self._keeper
        self._keeper.add_done_callback(_end_process)

    async def stop(self) -> None:
        """End the connection."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._link is not None:
            self._link.close("the front stops")
            self._link = None

    @property
    def is_up(self) -> bool:
        """Whether questions are answered, as far as is known."""
        return self._ready.is_set()

    def tell(self, kind: str, *values: Any) -> None:
        """Send something that has no reply; it is lost if there is no connection."""
        if self._link is not None and self._ready.is_set():
            self._link.send([kind, 0, *values])

    async def ask(self, kind: str, *values: Any, late: Callable[[Any], None] | None = None) -> Any:
        """The reply to a question; ``OwnerLost`` if there is none in time.

        Parameters
        ----------
        kind, values: the question.
        late: called with a reply that comes after the question was given up.
        """
        future: asyncio.Future[Any] = self._loop.create_future()

        def take(value: Any, error: Exception | None) -> None:
            if future.done():
                if error is None and late is not None:
                    late(value)
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)

        await self.up()
        self.ask_with(take, late, kind, *values)
        return await future

    async def up(self) -> None:
        """Wait for the connection; ``OwnerLost`` if there is none in time, or if the owner does not read."""
        if not self._ready.is_set():
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._ready.wait()
            except TimeoutError:
                raise OwnerLate from None
        if self._link is not None and self._link.is_full:
            raise OwnerLate("the owner of the journal does not read what it is sent")

    def ask_with(self, take: Take, late: Callable[[Any], None] | None, kind: str, *values: Any) -> None:
        """Ask a question whose reply is taken as soon as it comes, whatever its request does meanwhile.

        Parameters
        ----------
        take: called once, with the value or the error.
        late: called with a value that comes after ``take`` was called with an error because it was late.
        kind, values: the question.
        """
        if self._link is None or not self._ready.is_set():
            take(None, OwnerLost())
            return
        self._last += 1
        self._questions[self._last] = _Question(self._loop.time(), take, late)
        self._link.send([kind, self._last, *values])

    async def _keep(self) -> None:
        while True:
            lost = self._loop.create_future()
            try:
                _, link = await self._loop.create_unix_connection(
                    lambda lost=lost: ProcessLink(self._receive, lambda reason: lost.done() or lost.set_result(reason)),  # type: ignore[misc]
                    self._path,
                )
            except OSError as error:
                self._complain(str(error))
                await asyncio.sleep(PAUSE)
                continue
            self._link = link
            self.connections += 1
            try:
                if await self._greeted(link, lost):
                    self._ready.set()
                    while not (await asyncio.wait({lost}, timeout=LOOK_EVERY))[0]:
                        self._give_up_late()
            finally:
                self._ready.clear()
                self._link = None
                if not link.ended:
                    link.close("it is made again")
                self._fail_all()
            if lost.done():
                self._complain(lost.result())
            await asyncio.sleep(PAUSE)

    async def _greeted(self, link: ProcessLink, lost: "asyncio.Future[str]") -> bool:
        """Whether the owner has answered and the front has done what it demands."""
        answered: asyncio.Future[Any] = self._loop.create_future()

        def take(value: Any, error: Exception | None) -> None:
            if not answered.done():
                answered.set_result((value, error))

        self._last += 1
        self._questions[self._last] = _Question(self._loop.time(), take, None)
        link.send(["hello", self._last, *self._hello()])
        await asyncio.wait({answered, lost}, return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            return False
        value, error = answered.result()
        if error is not None:
            return False
        await self._welcome(value)
        return not link.ended

    def _receive(self, messages: list[Message]) -> None:
        for number, kind, *values in messages:
            if not number:
                self._told(kind, values)
                continue
            question = self._questions.pop(number, None)
            if question is None:
                continue
            if kind == OK:
                question.take(values[0], None)
            else:
                question.take(None, error_in(values))

    def _give_up_late(self) -> None:
        """Fail the questions that wait for too long; their replies may still come."""
        due = self._loop.time() - PATIENCE
        for number, question in list(self._questions.items()):
            if question.asked == GIVEN_UP:
                continue
            if question.asked > due:
                break
            late = question.late

            def take(value: Any, error: Exception | None, late: Callable[[Any], None] | None = late) -> None:
                if error is None and late is not None:
                    late(value)

            self._questions[number] = question._replace(asked=GIVEN_UP, take=take)
            question.take(None, OwnerLate("the owner of the journal did not answer in time"))
            self._complain("it does not answer in time")

    def _fail_all(self) -> None:
        questions, self._questions = self._questions, {}
        for question in questions.values():
            question.take(None, OwnerLost())

    def _complain(self, reason: str) -> None:
        if times := self._rate.count("owner"):
            known = {"reason": reason, "remedy": REMEDY, "since_last_line": times}
            log.warning("the owner of the journal cannot be reached: requests wait", extra=known)


def _end_process(keeper: "asyncio.Task[None]") -> None:
    """A front that cannot go on with its owner ends, and the supervisor starts another one."""
    if not keeper.cancelled() and (error := keeper.exception()) is not None:
        log.error("this front cannot go on with its owner: it ends, and another one is started", exc_info=error)
        os.kill(os.getpid(), signal.SIGTERM)
