"""Tickets that another replica decides: as letters and digits, and only where they can still be decided."""

import pytest

from bpac.routing.learning.model import OwnScore
from bpac.routing.recorded_terms import DecisionRules
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.messages import ReplicaMessages, SharedTicket

TERMS = Ticket(17, 2, 0.25, 0.05, 0, 123)


def replica(generation: int = 3, epoch: int = 2) -> ReplicaMessages:
    """A replica that knows a generation and an epoch."""
    messages = ReplicaMessages("one", GameNames("test", 1), DecisionRules.of(Router(0.2).settings))
    messages.generation, messages.epoch = generation, epoch
    return messages


def test_a_ticket_is_read_as_it_was_written() -> None:
    """All its terms, also by a replica that has not heard of the latest cut."""
    ticket = SharedTicket(3, TERMS, ())
    assert ticket.to_text().isascii()
    assert replica().read_ticket(ticket.to_text()) == ticket
    assert replica(generation=2).read_ticket(ticket.to_text()) == ticket


@pytest.mark.parametrize(
    ("ticket", "known"),
    [
        (SharedTicket(3, TERMS, ()), {"generation": 4}),
        (SharedTicket(3, TERMS, ()), {"epoch": 3}),
        (SharedTicket(3, TERMS, (OwnScore(),)), {}),
    ],
)
def test_a_ticket_that_cannot_be_decided_is_not_read(ticket: SharedTicket, known: dict[str, int]) -> None:
    """It was cut off, is of another epoch, or has a learned score that is not known here."""
    assert replica(**known).read_ticket(ticket.to_text()) is None
