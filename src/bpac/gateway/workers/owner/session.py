"""One front process, as the owner of the journals sees it: its tickets, its rounds, and what it asks for.

1. A front asks for a game once (``open``), and then takes tickets in it, decides, and settles outcomes. Messages are
   handled in the order in which they come. Nothing in it waits: what must be durable before it is answered is answered
   when the batch is durable, with one commit for all of it.
2. A ticket or a round belongs to the front that it was given to, and to the game as it was opened then. After the store
   was opened again, the tickets from before are void, and outcomes of rounds from before were forfeited already.
3. If the front is lost, its tickets ended for a reason that is no property of its requests. That counts like a crash
   (MATH section 12): in each game in which it had tickets, the earliest one under way is charged as a loss, and the
   others, those of other fronts too, are void. Its open audits are forfeited, unless feedback comes from outside.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bpac.errors import BpacError, InputError, StoreError
from bpac.gateway.auth.keys import Identity, KeyLimits
from bpac.gateway.budgets.budgets import Charge
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.workers.link import Message, ProcessLink
from bpac.gateway.workers.messages import FAILED, OK
from bpac.gateway.workers.owner.front_games import Durable, FrontGames, GameNotOpen, Later, logged_with

if TYPE_CHECKING:
    from bpac.gateway.workers.owner.fronts import Fronts

log = logging.getLogger("bpac.gateway")

# Seconds that a question waits for something to come to pass; a front gives up on a question after 10.
LONGEST_WAIT = 2.0


class FrontSession:
    """The session of one front, from its connection to its end.

    Parameters
    ----------
    fronts: all sessions, and the service that they share.
    """

    def __init__(self, fronts: "Fronts") -> None:
        self._fronts = fronts
        self.link = ProcessLink(self._receive, self._lost)
        self.index = -1
        self.pid = 0
        self.generation = 0
        self.games = FrontGames(fronts)
        self._charges: dict[int, Charge] = {}
        self._charged = 0
        # What the front reported last, and whether it stops because it was told to.
        self.report: dict[str, Any] = {}
        self.stops = False
        self._handlers: dict[str, Callable[..., Any]] = {
            **{name: getattr(self, name) for name in _OWN},
            **{name: getattr(self.games, name) for name in _OF_GAMES},
        }

    def _receive(self, messages: list[Message]) -> None:
        late: list[tuple[int, Durable]] = []
        for message in messages:
            try:
                kind, number, *values = message
                handle = self._handlers[kind]
            except (ValueError, KeyError, TypeError):
                self._refuse_message("a message of an unknown kind")
                return
            try:
                value = handle(*values)
            except BpacError as error:
                self._answer_error(number, kind, error)
            except Exception as error:  # whatever it is, the other fronts go on
                log.error("a message of a front cannot be used", extra={"kind": str(kind)[:40]}, exc_info=error)
                self._refuse_message(f"a message of kind {kind} that cannot be used ({type(error).__name__})")
                return
            else:
                if isinstance(value, Durable) and number:
                    late.append((number, value))
                elif isinstance(value, Later) and number:
                    self._fronts.spawn(self._answer_later(number, value))
                elif number:
                    self.link.send([number, OK, value])
        if late:
            self._fronts.spawn(self._answer_durable(late))

    def _answer_error(self, number: int, kind: str, error: BpacError) -> None:
        if not number:  # nobody waits for it; a failed store was logged when it failed
            if not isinstance(error, StoreError | GameNotOpen):
                log.error("a message of a front had no effect", extra={"kind": kind, "error": str(error)})
        elif isinstance(error, GameNotOpen):
            self.link.send([number, FAILED, "unknown_game", ""])
        elif isinstance(error, BadRequest):
            details = [str(error), error.status, error.param, error.code, error.retry_after, error.headers]
            self.link.send([number, FAILED, "bad_request", *details])
        elif isinstance(error, StoreError):
            self.link.send([number, FAILED, "store", str(error), error.cause, error.remedy])
        else:
            self.link.send([number, FAILED, "error", f"{type(error).__name__}: {error}"])

    def _refuse_message(self, reason: str) -> None:
        self.link.fault = True
        self.link.close(reason)

    async def _answer_later(self, number: int, later: Later) -> None:
        """Have the front ask again as soon as it is of use, and before it gives up."""
        await asyncio.wait({later.future}, timeout=LONGEST_WAIT)
        self.link.send([number, OK, None])

    async def _answer_durable(self, late: list[tuple[int, Durable]]) -> None:
        """Answer when everything that was written so far is durable."""
        for store in {id(reply.game.store): reply.game.store for _, reply in late}.values():
            try:
                await store.durable()
            except StoreError as error:
                for number, reply in late:
                    if reply.game.store is store:
                        self.link.send([number, FAILED, "store", str(error), error.cause, error.remedy])
            else:
                for number, reply in late:
                    if reply.game.store is store:
                        self.link.send([number, OK, reply.value])
        self.link.flush()

    # What fronts ask for.

    def hello(self, index: int, pid: int) -> dict[str, Any]:
        """A front has connected; it gets what it needs to know."""
        self.index = index
        self.pid = pid
        self._fronts.joined(self)
        return self._fronts.welcome()

    def moved(self, generation: int) -> None:
        """A front answers new requests with a configuration from now on."""
        self._fronts.moved(self, generation)

    def open(self, generation: int, route: str, segment: str) -> dict[str, Any]:
        """The game of a segment."""
        game = self._fronts.game(generation, route, segment)
        if game is None:
            raise GameNotOpen
        return {
            "number": game.number,
            "segment": game.segment,
            "feature_names": list(game.feature_names),
            "embeds_prompts": game.embeds_prompts,
        }

    def admit(self, owner: str, limits: list[int | None], size: int) -> list[int]:
        """Count a request against the limits of its key."""
        identity = Identity(owner, "", frozenset(), KeyLimits(*limits))
        charge = self._fronts.budgets.admit(identity, size)
        if charge is None:
            raise InputError("a request is counted that has no limits")
        self._charged += 1
        self._charges[self._charged] = charge
        return [self._charged, charge.estimate]

    def settle(self, charge: int, tokens: int) -> None:
        """Charge the tokens that a request used."""
        if (found := self._charges.pop(charge, None)) is not None:
            found.settle(tokens)

    def refund(self, charge: int) -> None:
        """Charge nothing for a request."""
        if (found := self._charges.pop(charge, None)) is not None:
            found.refund()

    def counted(self, report: dict[str, Any]) -> None:
        """Add what the front has counted since its last report."""
        self.report = report
        self._fronts.telemetry.counted(report)

    def upstream_failed(self, model: str, failure: list[Any], request: str) -> None:
        """Record a failed attempt of the front to get an answer of a model; for the request with an id."""
        kind, status, text, fields = failure
        with logged_with(request):
            self._fronts.telemetry.upstream_failed(model, kind, status, text, tuple(fields))

    def bye(self) -> None:
        """The front stops, because it was told to."""
        self.stops = True

    def health_failed(self, label: str, kind: str, status: int | None, text: str, remedy: str) -> None:
        """Record a failed attempt of the front, which it has counted and logged."""
        if (health := self._fronts.telemetry.health(label)) is not None:
            health.record_failure(kind, status, text, remedy)

    def suspect(self, label: str) -> None:
        """Find out whether a model server is down."""
        self._fronts.telemetry.suspect(label)

    def _lost(self, reason: str) -> None:
        """The front ended, or its connection did: nothing of it can be decided any more."""
        tickets, rounds = self.games.tickets, self.games.rounds
        self._charges.clear()
        if self.link.fault:
            self._fronts.metrics.count("bpac_worker_faults_total", fault="bad message")
            log.error(
                "a process sent what cannot be read: its connection was ended",
                extra={"front": self.index, "reason": reason},
            )
        self._fronts.left(self, reason, tickets, rounds)
        try:
            self.games.cut_off()
        except StoreError:
            log.error("what a lost front had under way cannot be recorded: it is charged when the store works again")


_OWN = (
    "hello",
    "moved",
    "open",
    "admit",
    "settle",
    "refund",
    "counted",
    "upstream_failed",
    "health_failed",
    "suspect",
    "bye",
)
_OF_GAMES = (
    "arrive", "scored", "decide", "withdraw", "no_score", "resolve", "resolve_stages", "forfeit", "refuse",
    "await_feedback", "drafted", "answered", "outcome_unused", "join_session", "leave_session", "follow",
)  # fmt: skip
