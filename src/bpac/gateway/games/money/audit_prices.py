"""Audits are placed where they cost least: in the hours in which the expert is cheap, and while it is not busy.

1. An audit teaches the same whenever it is made. So the exploration rate depends on what an audit costs now
   (``Router.expect``): the schedule makes more audits in cheap hours, and the least while the expert is busy.
2. Hours and load are known when a request arrives, before its draft is asked for, and the rate of its ticket is fixed
   then. They depend on earlier requests and on the clock, never on what this request's draft loses.
3. Every change is an entry of the journal, so that a rebuilt router has the same rates. An expert that was busy stays
   busy until its load has fallen to three quarters, so that a load near the limit does not fill the journal.
"""

from bpac.gateway.config.routes.routes import RouteSettings
from bpac.routing.journal.entries import Expected

# The share of ``busy_at`` below which the expert is no longer busy.
NO_LONGER_BUSY = 0.75
USUAL = Expected()


def expected_now(route: RouteSettings, before: Expected, seconds: float, expert_calls: int) -> Expected:
    """What is expected of the requests that arrive from now on.

    Parameters
    ----------
    route: the settings of the route.
    before: what was expected until now.
    seconds: the time, in seconds since 1970.
    expert_calls: calls of the expert's model that are under way.
    """
    cheap = any(hours.has(seconds) for hours in route.cheap_hours)
    busy = False
    if route.busy_at is not None:
        busy = expert_calls >= route.busy_at * (NO_LONGER_BUSY if before.busy else 1.0)
    # What an audit gains is saved in the hours to come, at their average price.
    price = (route.cheap_price if cheap else 1.0) / route.mean_price if route.cheap_hours else 1.0
    return Expected(price, before.rounds, busy)
