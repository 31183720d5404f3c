"""A router whose decisions a gateway makes: for programs that ask their models themselves.

1. ``round()`` takes a ticket when a query arrives, before its draft: rounds count in the order of arrival, so any
   number of them may be under way at once. The round is decided by ``decide``, or withdrawn at the end of its block.
2. Every request may be sent again, and has an effect once: the ticket of a round, and its decision, stay the same.
3. If the gateway is gone or does not answer, nothing is decided: the expert answers, and no draft is kept.
"""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self

from bpac.arguments import fraction, one_of
from bpac.errors import AnswerError, GatewayError, GatewayGone, InputError, NotAudited
from bpac.models.refusals import is_refused
from bpac.remote.decision import NEEDS, NO_GATEWAY, RemoteDecision, undecided
from bpac.remote.gateway import GatewayClient
from bpac.routing.learning.features import Feature

log = logging.getLogger("bpac.remote")

Features = Mapping[str, Feature]
Usage = Mapping[str, int]


class RemoteRouter:
    """A route of a gateway with ``decide_only = true``.

    Parameters
    ----------
    base_url: address of the gateway, such as ``http://127.0.0.1:8800``.
    route: name of the route.
    api_key: key with the roles ``call`` and ``feedback`` (default: none, for an open gateway).
    on_failure: what happens if the gateway is gone: ``expert``, nothing is decided and the expert answers (default), or
        ``error``, ``GatewayGone`` is raised.
    timeout: seconds that one attempt to reach the gateway may take (default: 5).
    retries: how often a request is sent again (default: 2).
    headers: sent with every request, for example the one that names the segment (default: none).
    """

    def __init__(
        self,
        base_url: str,
        route: str,
        *,
        api_key: str | None = None,
        on_failure: Literal["expert", "error"] = "expert",
        timeout: float = 5.0,
        retries: int = 2,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        one_of(on_failure, "on_failure", ("expert", "error"))
        self._route = route
        self._raises = on_failure == "error"
        key = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._gateway = GatewayClient(base_url, {**key, **(headers or {})}, timeout, retries)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait until all tickets are given back that are on their way, and close the connections."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._gateway.close()

    def round(self, **fields: Any) -> "RemoteRound":
        """One query, as an ``async with`` block that begins when it arrives and ends with its decision.

        Parameters
        ----------
        fields: ``user`` or ``metadata`` of the request, if segments are named there.
        """
        return RemoteRound(self, fields)

    async def arrive(self, **fields: Any) -> str | None:
        """Take a ticket for a query that has just arrived; none if the gateway is gone.

        Parameters
        ----------
        fields: as for ``round``.
        """
        key = {"Idempotency-Key": secrets.token_hex(16)}
        try:
            reply = await self._gateway.post("arrive", {"route": self._route, **fields}, key, {"ticket": str})
        except GatewayGone as error:
            self._failed(error, "the expert answers")
            return None
        return str(reply["ticket"])

    async def decide(
        self,
        uncertainty: float,
        *,
        ticket: str | None = None,
        features: Features | None = None,
        usage: Usage | None = None,
    ) -> RemoteDecision:
        """Decide a query.

        Parameters
        ----------
        uncertainty: the score of the draft (U), in [0, 1]; larger is less sure.
        ticket: what ``arrive`` gave (default: one is taken now, which is right for queries that come one by one).
        features: what else is known of the draft, by name, where the route learns from it.
        usage: tokens of the draft, as OpenAI's ``usage`` has them, for the savings (default: not known).
        """
        known = fraction(uncertainty, "uncertainty")
        if ticket is None:
            ticket = await self.arrive()
        if ticket is None:
            return undecided(NO_GATEWAY)
        body: dict[str, Any] = {"ticket": ticket, "uncertainty": known}
        body |= {"features": dict(features)} if features else {}
        body |= {"usage": dict(usage)} if usage else {}
        try:
            return RemoteDecision.read(await self._gateway.post("decide", body, needs=NEEDS))
        except GatewayGone as error:
            self._failed(error, "the expert answers")
            return undecided(NO_GATEWAY)

    async def observe(self, decision: RemoteDecision, loss: float, usage: Usage | None = None) -> bool:
        """Report the loss of a draft; false if nothing was decided or if the gateway is gone: then it counts as 1.

        Parameters
        ----------
        decision: what was decided; the expert was called.
        loss: loss of the draft against the expert's answer, in [0, 1].
        usage: tokens of the expert's answer, for the savings (default: not known).
        """
        return await self._report(decision, {"loss": fraction(loss, "loss")}, usage)

    async def forfeit(self, decision: RemoteDecision) -> bool:
        """Report that the loss will never be known: it counts as 1."""
        return await self._report(decision, {"outcome": "unknown"}, None)

    async def refuse(self, decision: RemoteDecision) -> bool:
        """Report that the expert refused to answer: the round counts neither for nor against any threshold."""
        return await self._report(decision, {"outcome": "refused"}, None)

    async def withdraw(self, ticket: str, reason: str = "no-score") -> None:
        """Give a ticket back whose query is not decided.

        Parameters
        ----------
        ticket: what ``arrive`` gave.
        reason: ``no-score``, ``caller-left``, ``draft-failed`` or ``cancelled`` (default: ``no-score``).
        """
        try:
            await self._gateway.post("withdraw", {"ticket": ticket, "reason": reason})
        except GatewayGone as error:
            self._failed(error, "the ticket counts as a loss until the gateway forgets it")

    async def summary(self) -> list[dict[str, Any]]:
        """The state of the route's games, as ``/v1/status`` has it; needs a key with the role ``operator``."""
        status = await self._gateway.get("status")
        games: list[dict[str, Any]] = status["routes"][self._route]
        return games

    def withdraw_later(self, ticket: str, reason: str) -> None:
        """Give a ticket back without waiting for it, for example because the task of the query was cancelled."""
        task = asyncio.get_running_loop().create_task(self._withdraw_quietly(ticket, reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _withdraw_quietly(self, ticket: str, reason: str) -> None:
        try:
            await self.withdraw(ticket, reason)
        except GatewayError as error:
            log.warning("a ticket could not be given back", extra={"route": self._route, "error": str(error)})

    async def _report(self, decision: RemoteDecision, outcome: dict[str, Any], usage: Usage | None) -> bool:
        if decision.id is None:
            return False
        if not decision.call_expert:
            raise NotAudited("the draft was kept: its loss is never seen and must not be reported")
        body = {"decision": decision.id, **outcome, **({"usage": dict(usage)} if usage else {})}
        try:
            await self._gateway.post("feedback", body)
        except GatewayGone as error:
            self._failed(error, "the round counts as a loss of 1")
            return False
        return True

    def _failed(self, error: GatewayGone, effect: str) -> None:
        if self._raises:
            raise error
        log.warning("the gateway is gone: %s", effect, extra={"route": self._route, "error": str(error)})


class RemoteRound:
    """One query: an ``async with`` block.

    Parameters
    ----------
    router: the router.
    fields: ``user`` or ``metadata`` of the arrival.

    Attributes
    ----------
    ticket: its ticket; none if the gateway is gone: the expert answers, so that no draft is needed.
    """

    def __init__(self, router: RemoteRouter, fields: Mapping[str, Any]) -> None:
        self._router = router
        self._fields = fields
        self.ticket: str | None = None
        self._decided = False

    async def __aenter__(self) -> Self:
        self.ticket = await self._router.arrive(**self._fields)
        return self

    async def decide(
        self, uncertainty: float, *, features: Features | None = None, usage: Usage | None = None
    ) -> RemoteDecision:
        """Decide the query, as ``RemoteRouter.decide`` does; without a ticket the expert answers."""
        known = fraction(uncertainty, "uncertainty")
        if self.ticket is None:
            return undecided(NO_GATEWAY)
        # From here on it is not known whether it was decided, so it is not withdrawn.
        self._decided = True
        return await self._router.decide(known, ticket=self.ticket, features=features, usage=usage)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.ticket is not None and not self._decided:
            self._router.withdraw_later(self.ticket, _reason(error))


def _reason(error: BaseException | None) -> str:
    """Why a query is not decided. What may have ended many queries at once is told apart (MATH section 12)."""
    # Clients of model servers name the status of a response so. A refusal of what was asked is about this query alone.
    status = getattr(error, "status_code", None)
    refused = isinstance(status, int) and is_refused(status)
    if error is None or refused or isinstance(error, AnswerError | InputError):
        return "no-score"
    return "draft-failed" if isinstance(error, Exception) else "cancelled"
