"""What a replica sends to Redis and what it gets back, as values; nothing here waits or sends.

1. Operations go out in batches with a sequence number, one batch at a time. Redis keeps the reply to the last batch of
   each replica. So a batch may be sent again until its reply arrives, and takes effect once.
2. A reply that Redis no longer has, or a sequence number behind what it acknowledged, shows that it lost entries.
3. After an outage a batch whose fate is not known is replaced by another one with the same number. If the first one did
   take effect, its reply comes back as *earlier*.
"""

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import json, msgpack

from bpac.routing.cascade.recorded_walks import RecordedWalk
from bpac.routing.cascade.rounds import StageOutcomes, answers_from_json
from bpac.routing.cascade.rules import JoiningRule, rule_from_json
from bpac.routing.coins import COMMITTED_BLOCK, KEY_BYTES, block_of_draws, key_digest
from bpac.routing.decision import Decision
from bpac.routing.learning.model import FrozenModel, OwnScore, frozen
from bpac.routing.recorded_terms import DecisionRules, RecordedScores, decide_on_terms
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.encoding import encode
from bpac.stores.redis.keys import GameNames

# Decisions in one batch: a new key of coins is enough for so many.
MOST_DECISIONS = COMMITTED_BLOCK
# Blocks of coins that are kept: decisions of one batch come from two at most.
MOST_BLOCKS = 4

Operation = tuple[Any, ...]


class SharedTicket(NamedTuple):
    """The ticket of a request in a game that several replicas share.

    Parameters
    ----------
    generation: tickets of an earlier generation were cut off.
    terms: its number and the terms on which it is decided.
    models: the learned scores that it has.
    joined: the stopping rules of a cascade that had joined when it arrived (default: none).
    """

    generation: int
    terms: Ticket
    models: tuple[FrozenModel | OwnScore, ...]
    joined: tuple[JoiningRule, ...] = ()

    def to_text(self) -> str:
        """The ticket as letters and digits, for another replica; ``ReplicaMessages.read_ticket`` reads it."""
        return ticket_text(self.generation, self.terms, len(self.models))


class BatchReply(NamedTuple):
    """The reply to a batch.

    Parameters
    ----------
    status: ``ok``; ``earlier``: the batch that this one replaced had taken effect, this one has not; ``gone``: the
        replica counts as dead and must join again; ``over``: the game ended; ``lost``: entries were lost.
    detail: why.
    results: one for each operation: the first ticket, the step, or whether it took effect; 0 if it did not; or what a
        name stands for (``named_decisions.py``).
    """

    status: str
    detail: str
    results: list[Any]


class ReplicaMessages:
    """The side of one replica in one game.

    Parameters
    ----------
    replica: its name, which no other process ever has.
    names: the keys of the game.
    rules: by which the game decides.
    """

    def __init__(self, replica: str, names: GameNames, rules: DecisionRules) -> None:
        self.replica = replica
        self.rules = rules
        self.acknowledged = 0
        self.epoch = 0
        self.generation = 0
        self.keys = [
            *(names.state, names.inbox, names.open, names.keys, names.replies, names.replicas),
            *(names.named, names.named_ends, names.followed),
        ]
        self._terms_version = -1
        # Threshold, rate, score and entries seen, as they are published.
        self._terms = (0.0, 1.0, 0, 0)
        self._models_version = "?"
        self._models: tuple[FrozenModel | OwnScore, ...] = ()
        self._joined: tuple[JoiningRule, ...] = ()
        # The keys and the draws of the latest blocks of coins, by their first step.
        self._blocks: dict[int, tuple[bytes, list[float]]] = {}
        self._new_key = secrets.token_bytes(KEY_BYTES)
        self._new_draws: list[float] | None = None

    @property
    def threshold(self) -> float:
        """The threshold that was published last, as far as this replica knows."""
        return self._terms[0]

    def batch(self, operations: Sequence[Operation], nonce: str) -> list[str | bytes | int]:
        """The arguments of the next batch, or of one that takes its place.

        Parameters
        ----------
        operations: what happened, in order.
        nonce: random; another one for each batch that is not a repetition.
        """
        known = next(reversed(self._blocks), 0)
        if self.rules.budget and self._new_draws is None:
            self._new_draws = block_of_draws(self._new_key)
        values = (
            *(self._terms_version, self._models_version, known),
            *(self._new_key.hex(), key_digest(self._new_key), operations, self._new_draws or False),
        )
        return [self.replica, self.acknowledged + 1, nonce, msgpack.encode(values)]

    def read(self, reply: Sequence[bytes]) -> BatchReply:
        """What Redis replied; what it published since is taken over."""
        status, body = reply[0].decode(), reply[1]
        if status not in ("ok", "earlier"):
            return BatchReply(status, body.decode(), [])
        generation, epoch, version, terms, models_version, models, blocks, used, results = msgpack.decode(body)
        self.acknowledged += 1
        self.generation, self.epoch = generation, epoch
        if terms:
            threshold, rate, score, seen, _ = terms.split("|")
            self._terms_version, self._terms = version, (float(threshold), float(rate), int(score), int(seen))
        if models:
            self._models_version = models_version
            if self.rules.cascade is not None:
                self._joined = tuple(rule_from_json(data) for data in json.decode(models))
            else:
                self._models = tuple(frozen(data) for data in json.decode(models))
        for first, key in blocks or ():
            self._blocks[first] = bytes.fromhex(key), block_of_draws(bytes.fromhex(key))
        while len(self._blocks) > MOST_BLOCKS:
            del self._blocks[next(iter(self._blocks))]
        if used:
            self._new_key, self._new_draws = secrets.token_bytes(KEY_BYTES), None
        return BatchReply(status, "", list(results or ()))

    def joined(self, replica: str) -> None:
        """Go on under another name: the one before counts as dead."""
        self.replica, self.acknowledged = replica, 0

    def ticket(self, number: int) -> SharedTicket:
        """A ticket that the last batch gave out."""
        return SharedTicket(self.generation, Ticket(number, self.epoch, *self._terms), self._models, self._joined)

    def read_ticket(self, text: str) -> SharedTicket | None:
        """A ticket that another replica gave out; none if it was cut off, or has learned scores not known here.

        This replica may not have heard of a cut yet, so the generation of the ticket may be newer than its own.
        """
        generation, *values, models = json.decode(urlsafe_b64decode(text))
        return self.ticket_of(generation, Ticket._make(values), models)

    def ticket_of(self, generation: int, terms: Ticket, models: int) -> SharedTicket | None:
        """A ticket that any replica may have given out; none if it was cut off, or has learned scores not known here.

        Parameters
        ----------
        generation, terms: of the ticket.
        models: how many learned scores it has.
        """
        if generation < self.generation or terms.epoch != self.epoch or models > len(self._models):
            return None
        return SharedTicket(generation, terms, self._models[:models])

    def decision(self, ticket: SharedTicket, draft: RecordedScores | RecordedWalk, result: int) -> Decision:
        """The decision of a request.

        Parameters
        ----------
        ticket, draft: of the request.
        result: its step; negative if a drift alarm has rung since it arrived.
        """
        step = abs(result)
        first, (_, draws) = self._block(step)
        return decide_on_terms(self.rules, ticket.terms, draft, step, draws[step - first], stale=result < 0)

    def key(self, step: int) -> bytes:
        """The key of the coins of a step that was just decided."""
        return self._block(step)[1][0]

    def _block(self, step: int) -> tuple[int, tuple[bytes, list[float]]]:
        return next((first, block) for first, block in reversed(self._blocks.items()) if first <= step)


def ticket_text(generation: int, terms: Ticket, models: int) -> str:
    """A ticket as letters and digits.

    Parameters
    ----------
    generation, terms: of the ticket.
    models: how many learned scores it has.
    """
    return urlsafe_b64encode(json.encode([generation, *terms, models])).decode()


def arriving(count: int) -> Operation:
    """Requests that have arrived."""
    return "a", count


def deciding(
    ticket: SharedTicket,
    draft: RecordedScores | RecordedWalk,
    note: dict[str, Any],
    *,
    budget: bool = False,
    named: Sequence[Any] | None = None,
) -> Operation:
    """A draft that is scored, or a walk that has ended.

    Parameters
    ----------
    ticket, draft, note: of the request.
    budget: whether the draft may be kept only while a budget has room (default: false).
    named: the name under which the decision is kept, and how long (``named_decisions.py``; default: none).
    """
    known = {"w": draft} if isinstance(draft, RecordedWalk) else {"u": draft.uncertainties, "f": draft.features}
    operation = "d", ticket.generation, ticket.terms.epoch, ticket.terms.number, encode({**known, "n": note})
    score = draft[0][0] if budget and isinstance(draft, RecordedScores) else False
    return (*operation, score, named or False)


def read_terms(ticket: str, terms: str) -> tuple[str, Ticket, int]:
    """The replica, the terms and the number of scores of a ticket, as Redis keeps them."""
    epoch, number = map(int, ticket.split(":"))
    replica, threshold, rate, score, seen, scores = terms.split("|")
    return replica, Ticket(number, epoch, float(threshold), float(rate), int(score), int(seen)), int(scores)


def read_draft(draft: dict[str, Any]) -> RecordedScores | RecordedWalk:
    """What ``deciding`` recorded of a draft."""
    if "w" in draft:
        value, accepted, answers, levels, full_propensity = draft["w"]
        return RecordedWalk(
            float(value), accepted, answers_from_json(answers), tuple(map(float, levels)), float(full_propensity)
        )
    features = tuple(float(value) if type(value) is int else value for value in draft["f"])
    return RecordedScores(tuple(map(float, draft["u"])), features)


def withdrawing(ticket: SharedTicket, reason: str, at: float) -> Operation:
    """A ticket without a decision."""
    return "w", ticket.generation, ticket.terms.epoch, ticket.terms.number, encode([reason, at])


def overdue(ticket: SharedTicket) -> Operation:
    """A draft that takes too long."""
    return "o", ticket.generation, ticket.terms.epoch, ticket.terms.number, ""


def resolving(
    step: int,
    loss: float | None,
    note: dict[str, Any],
    *,
    cause: str = "",
    draft_served: bool = False,
    refused: bool = False,
    stages: StageOutcomes | None = None,
) -> Operation:
    """The outcome of an audit."""
    return "r", encode([step, loss, cause, draft_served, refused, note, stages]), int(draft_served)


CUT_OFF: Operation = ("c",)
# Shows that a replica lives.
NOTHING: Operation = ("n",)
