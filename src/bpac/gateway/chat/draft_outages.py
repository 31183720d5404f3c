"""Outages of a draft's server, told apart from drafts that fail by themselves (MATH section 12).

1. A draft that fails by itself is a property of its request, and its ticket is withdrawn.
2. A server that goes down ends all drafts under way at once. What was under way took longer than what was decided, so
   it is likelier to lose: withdrawing all of it would spare the losses that were on their way. It counts like a crash.
3. So the ticket of a draft whose connection broke is held back while others are under way. If a draft comes after it,
   it failed by itself. If several fail and none comes, the server is down, and everything under way is cut off.
4. While the server is down nothing is under way for long: tickets are withdrawn as they fail, until a draft comes.
"""

from bpac.errors import AnswerError, Unavailable
from bpac.models.retrying import Failed
from bpac.routing.tickets.ticket import Ticket

# So many drafts that fail, and none that comes, are an outage.
SEVERAL = 3
# How a reply ends that was under way when its server went down: without a status, or with one of a proxy before it.
BROKEN_OFF = (None, 502, 504)


def ends_drafts(error: Exception) -> bool:
    """Whether what ended a draft may have ended others at the same time: a reply that cannot be read did not."""
    failed = error.__cause__ if isinstance(error, Unavailable) and error.status in BROKEN_OFF else None
    return isinstance(failed, Failed) and not isinstance(failed.__cause__, AnswerError | ValueError | RecursionError)


class DraftOutages:
    """The tickets of drafts that failed, of which it is not known yet whether they failed by themselves."""

    __slots__ = ("_failed", "down")

    def __init__(self) -> None:
        self._failed: dict[Ticket, str] = {}
        self.down = False

    def __contains__(self, ticket: Ticket) -> bool:
        return ticket in self._failed

    def __len__(self) -> int:
        return len(self._failed)

    def failed(self, ticket: Ticket, reason: str) -> bool:
        """Hold a ticket back; true if its server is down, which is said once."""
        self._failed[ticket] = reason
        if len(self._failed) < SEVERAL:
            return False
        self._failed.clear()
        self.down = True
        return True

    def release(self) -> dict[Ticket, str]:
        """The tickets that failed by themselves, with the reason of each: nothing speaks for an outage any more."""
        released, self._failed = self._failed, {}
        self.down = False
        return released
