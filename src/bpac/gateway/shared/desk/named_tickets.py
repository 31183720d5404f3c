"""Tickets that callers hold, under a name by which every gateway finds them: a query has one coin at all gateways.

The name is the nonce of the ticket (``deciding/ticket_ids.py``); all requests of a caller with one idempotency key have
the same. A decision is kept under it for as long as a single gateway keeps its reply.
"""

from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.deciding.held_tickets import KEEP_REPLY, MOST_REPLIES
from bpac.stores.redis.replicas.named_decisions import NamedTerms

# More often than anybody asks.
_ANY_NUMBER = 2**31


def named_ticket(route: RouteSettings, name: str) -> NamedTerms:
    """For how long the name of a ticket stands for one decision.

    Parameters
    ----------
    route: the settings of the route.
    name: the name.
    """
    hold = max(KEEP_REPLY, route.deadline, route.draft_deadline)
    return NamedTerms(name, MOST_REPLIES, KEEP_REPLY, KEEP_REPLY, _ANY_NUMBER, hold)
