"""Decisions that any replica finds by name: those of sticky sessions, and those that callers ask for again.

1. A request that *joins* a name gets the decision that the name stands for. If there is none, it gets a ticket, which
   holds the name: the decision of that ticket is what later requests of the name get. All this is one operation of a
   batch (``lua/batch.lua``), so that of all requests at all replicas exactly one is decided.
2. A ticket holds a name only as long as it is under way. If it is withdrawn, or cut off because its replica died or
   Redis was gone, the next request that joins takes the name.
3. What is kept is what the decision follows from: step, ticket, terms and scores, as in the inbox, and the key of its
   coin. Whoever reads it computes the decision as the folder does (``routing/recorded_terms.py``), to the bit.
4. A name is kept for a time after its last request, for a time after its decision, and for a number of requests. Times
   are those of Redis, one clock for all replicas; they say when another round begins and nothing about its coin.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import json

from bpac.routing.coins import block_of_draws
from bpac.routing.decision import Decision
from bpac.routing.recorded_terms import DecisionRules, decide_on_terms
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.redis.messages import Operation, read_draft, read_terms, ticket_text


class NamedTerms(NamedTuple):
    """A name, and for how long it stands for one decision.

    Parameters
    ----------
    name: the name.
    most: names that a game keeps at most; beyond that, the one that would end first is forgotten.
    idle: seconds without a request after which it ends.
    age: seconds after the decision after which it ends.
    requests: requests after which it ends.
    hold: seconds for which a ticket holds it at most.
    deadline: seconds for which it is noted when a request followed its decision (default: 0, it is not noted).
    """

    name: str
    most: int
    idle: float
    age: float
    requests: int
    hold: float
    deadline: float = 0.0


class HeldName(NamedTuple):
    """The ticket that holds a name, or that was decided under it.

    Parameters
    ----------
    generation: of the ticket.
    terms: its number, and the terms on which it is decided.
    scores: how many scores it has.
    """

    generation: int
    terms: Ticket
    scores: int

    def to_text(self) -> str:
        """The ticket as letters and digits, as the replica that gave it out writes it."""
        return ticket_text(self.generation, self.terms, self.scores - 1)


class NamedDecision(NamedTuple):
    """The decision that a name stands for.

    Parameters
    ----------
    decision: the decision.
    ticket: the ticket that was decided.
    key: of its coin.
    note: what was noted with it.
    """

    decision: Decision
    ticket: HeldName
    key: bytes
    note: dict[str, Any]


def joining(named: NamedTerms) -> Operation:
    """A request that follows the decision of a name, or takes a ticket that holds it."""
    return "j", *named


def finding(name: str) -> Operation:
    """A look at the decision of a name, which is no request."""
    return "f", name


def read_named(values: Sequence[Any], rules: DecisionRules) -> NamedDecision | HeldName:
    """What a name stands for, as a batch replied it.

    Parameters
    ----------
    values: the reply.
    rules: of the game.
    """
    if len(values) == 3:
        return _ticket(*values)
    _, _, step, stale, generation, number, terms, draft, first, key = values
    ticket, known = _ticket(generation, number, terms), json.decode(draft)
    draw = block_of_draws(bytes.fromhex(key))[step - first]
    decision = decide_on_terms(rules, ticket.terms, read_draft(known), step, draw, stale=stale == 1)
    return NamedDecision(decision, ticket, bytes.fromhex(key), known["n"])


def _ticket(generation: int, number: str, terms: str) -> HeldName:
    _, read, scores = read_terms(number, terms)
    return HeldName(generation, read, scores)
