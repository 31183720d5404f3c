"""bpac: spend LLM thinking only where it matters, with a promise that can be proved."""

from bpac.betting.bounds.certificate import Certificate
from bpac.routing.decision import Decision
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket

__all__ = ["Certificate", "Decision", "Router", "Ticket", "__version__"]
__version__ = "0.1.0"
