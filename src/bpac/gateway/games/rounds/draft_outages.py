"""Outages of the draft's server, and how they differ from drafts that fail independently (MATH section 12).

1. A draft that fails independently is a property of its request, and its ticket is withdrawn.
2. A server that goes down ends all drafts under way at once. These took longer than those that were decided, so they
   are likelier to lose: withdrawing all of them would hide the losses that were about to come. It counts like a crash.
3. So the ticket of a draft whose connection broke is held back while others are under way. If a draft arrives after it,
   it failed independently. If several drafts fail and none arrives, the server is down, and all tickets are cut off.
4. While the server is down no draft is under way for long: tickets are withdrawn as drafts fail, until one arrives.
"""

from bpac.errors import AnswerError, Unavailable
from bpac.models.retrying import Failed
from bpac.routing.tickets.ticket import Ticket

# The number of drafts that fail, with none that arrives in between, that make an outage.
SEVERAL = 3
# How a response ends when its server goes down: without a status, or with the status of a proxy before the server.
BROKEN_OFF = (None, 502, 504)
# What an attempt failed with if its response came and could not be read.
UNREADABLE = (AnswerError, ValueError, RecursionError)


def ends_drafts(error: Exception) -> bool:
    """Whether what ended a draft may have ended others at the same time; a response that cannot be read has not."""
    failed = error.__cause__ if isinstance(error, Unavailable) and error.status in BROKEN_OFF else None
    return isinstance(failed, Failed) and not isinstance(failed.__cause__, UNREADABLE)


class DraftOutages:
    """The tickets that are held back: their draft failed, independently or in an outage that is not known yet.

    Attributes
    ----------
    down: whether the server is down.
    """

    __slots__ = ("_failed", "down")

    def __init__(self) -> None:
        self._failed: dict[Ticket, str] = {}
        self.down = False

    def __contains__(self, ticket: Ticket) -> bool:
        return ticket in self._failed

    def __len__(self) -> int:
        return len(self._failed)

    def failed(self, ticket: Ticket, reason: str) -> bool:
        """Hold a ticket back; true, once, if that makes an outage."""
        self._failed[ticket] = reason
        if len(self._failed) < SEVERAL:
            return False
        self._failed.clear()
        self.down = True
        return True

    def release(self) -> dict[Ticket, str]:
        """The tickets that failed independently, with the reason of each; the server is up."""
        released, self._failed = self._failed, {}
        self.down = False
        return released
