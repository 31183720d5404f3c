"""A replica's part in one game: its requests arrive, are decided and have an outcome.

A request costs at most two calls of Redis, arrival and decision, shared with others of the same batch (``batches.py``).
"""

import asyncio
import time
from typing import Any, cast

from bpac.errors import StoreError
from bpac.routing.decision import Decision
from bpac.stores.redis.messages import NOTHING, Operation, SharedTicket, arriving, deciding, withdrawing
from bpac.stores.redis.replicas.batches import Batches, Draft
from bpac.stores.redis.replicas.named_decisions import HeldName, NamedDecision, NamedTerms, finding, joining

# Why a ticket is withdrawn whose caller left before it was given out.
CALLER_LEFT = "caller-left"
# Seconds between two attempts while nothing may arrive.
SEALED_PAUSE = 0.003


class GameReplica(Batches):
    """One process's side of a game; the parameters are those of ``Batches``."""

    async def arrive(self) -> SharedTicket:
        """Take a ticket; ``StoreError`` if Redis cannot give one out."""
        ticket: SharedTicket = await self._given_out(arriving(1))
        return ticket

    async def _given_out(self, operation: Operation) -> Any:
        """The result of an operation that gives out a ticket."""
        give_up = time.monotonic() + self.timeout
        while True:
            found = await self._ticket(operation)
            if found is not None:
                return found
            # Tickets are not given out for a moment: a cut or a learned score is being published.
            if time.monotonic() > give_up:
                raise StoreError("no replica publishes what is in force", cause="the game has no folder")
            await asyncio.sleep(SEALED_PAUSE)

    async def _ticket(self, operation: Operation) -> Any:
        result = self._queued(operation)
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            # The caller has left while it waited: the ticket, if there is going to be one, is withdrawn.
            result.add_done_callback(self._return_ticket)
            raise

    def _return_ticket(self, result: "asyncio.Future[Any]") -> None:
        if not result.cancelled() and result.exception() is None and isinstance(result.result(), SharedTicket):
            self.tell(withdrawing(result.result(), CALLER_LEFT, round(time.time(), 3)))

    async def decide(
        self, ticket: SharedTicket, draft: Draft, note: dict[str, Any], named: NamedTerms | None = None
    ) -> Decision | None:
        """The decision of a request, which cannot be lost any more; none if its ticket was cut off.

        Parameters
        ----------
        ticket, draft, note: of the request.
        named: the name under which the decision is kept (default: none).
        """
        decision: Decision | None = await self._sent(
            deciding(ticket, draft, note, budget=self.messages.rules.budget, named=named), (ticket, draft)
        )
        return decision

    async def join_name(self, named: NamedTerms) -> NamedDecision | HeldName | SharedTicket:
        """The decision of a name, the ticket under way that holds it, or a new ticket that holds it from now on."""
        found = await self._given_out(joining(named))
        assert found is not None
        return cast(NamedDecision | HeldName | SharedTicket, found)

    async def find_name(self, name: str) -> NamedDecision | None:
        """The decision of a name; none if there is none."""
        found: NamedDecision | None = await self._sent(finding(name))
        return found

    async def told(self, operation: Operation) -> None:
        """Send an operation, and wait until Redis has it; ``StoreError`` if it does not."""
        await self._sent(operation)

    async def beat(self, every: float) -> None:
        """Show that this process lives, unless it has shown it lately.

        Parameters
        ----------
        every: seconds.
        """
        if time.monotonic() - self._called_at >= every:
            await self.sent()

    async def leave(self) -> None:
        """Take part no longer: what is still open counts as it does after a crash."""
        names = self._names
        keys = [names.state, names.inbox, names.open, names.replies, names.replicas]
        try:
            await self.sent()  # all that waits; it also shows whether anything was lost that was written here
            await self._client.run("remove", keys, 0, self.messages.replica, "")
        finally:
            if self._task is not None:  # Redis is gone, and this waits for it
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    async def sent(self) -> None:
        """Wait until Redis has everything that was sent before."""
        await self._sent(NOTHING)
