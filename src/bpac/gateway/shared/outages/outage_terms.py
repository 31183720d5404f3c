"""Requests that arrive while Redis is gone, decided on the terms that were published last: ``store_outage``.

They are no rounds of the game. Why the promise holds all the same, and what it does not say about them, is written in
``docs/shared-games.md`` ("While Redis is gone"):

1. Whether a request is outside is known when it arrives, before its draft: the bet loses no round because of its loss.
2. The threshold is one that was certified. It does not move, and it is used for a bounded time after Redis was last
   heard of, because a drift alarm cannot be heard meanwhile.
3. The coin is thrown as it would be in the game, since the certified risk counts on it; its audits teach nothing, and
   their grades are left out.
4. The loss of such a draft is never known. It is counted, durably and before it is served, as a loss of at most 1
   beside the certificate.
"""

import logging
import math
import random
import time
from collections.abc import Callable

from bpac.errors import SettingsError, StoreError
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.config.store_outage import StoreOutage
from bpac.gateway.shared.outages.outside_log import OutsideLog
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.routing.decision import Decision
from bpac.routing.learning.features import Features
from bpac.routing.policies import Portfolio
from bpac.routing.recorded_terms import DecisionRules, decide_on_terms, draft_scores
from bpac.stores.redis.messages import SharedTicket

log = logging.getLogger("bpac.gateway")

SERVING = (
    "Redis is gone: drafts below the last threshold are served for a while, and counted beside the certificate; a "
    "drift cannot be noticed meanwhile"
)
# Seconds between two lines.
LOG_EVERY = 30.0
OVER = "Redis has been gone for too long to use the last threshold: the expert answers every request"
# Draws for scores and for coins; callers must not be able to predict them.
_DRAW = random.SystemRandom().random


class OutageServing:
    """What a gateway serves while Redis is gone.

    Parameters
    ----------
    settings: for how long.
    drafts: where drafts are counted that are served meanwhile.
    metrics: counts them, too.
    """

    def __init__(self, settings: StoreOutage, drafts: OutsideLog, metrics: Metrics) -> None:
        self.settings = settings
        self.drafts = drafts
        self.metrics = metrics
        # When it was last logged that drafts are served, and that they are not any more: games have their own outages.
        self._logged = {True: -math.inf, False: -math.inf}

    def is_allowed(self, answered_at: float, outage: StoreError | None) -> bool:
        """Whether the last terms may be used; the log says so, and when they may not any more.

        Parameters
        ----------
        answered_at: when Redis was last known to answer, on the monotonic clock.
        outage: why Redis cannot be used; none if it can by now.
        """
        now = time.monotonic()
        allowed = now - answered_at <= self.settings.seconds
        if outage is not None and now - self._logged[allowed] >= LOG_EVERY:
            self._logged[allowed] = now
            log.warning(SERVING if allowed else OVER, extra={"seconds": self.settings.seconds, "error": str(outage)})
        return allowed


def check_outage(route: RouteSettings) -> None:
    """Raise ``SettingsError`` if the promise of a route says nothing about requests outside its game."""
    policy = route.new_router().settings.policy
    arbitrary = isinstance(policy, Portfolio) and policy.assume == "any"
    if arbitrary or route.policy in ("budget", "paper-prior"):
        name = 'assume = "any"' if arbitrary else f"policy = {route.policy!r}"
        raise SettingsError(
            f"routes.{route.name}: the promise with {name} is about the rounds of its game, whatever the traffic, so "
            "drafts must not be served outside it: leave out gateway.store_outage, or use another policy"
        )


class OutageTerms:
    """The terms of requests to one game that arrive while Redis is gone.

    Parameters
    ----------
    serving: what the gateway serves meanwhile.
    route, game: the name of the route, and the game by which drafts are counted.
    rules: of the game.
    ticket: the terms that were published last.
    answered_at: tells when Redis was last known to answer.
    draw: uniform draws in [0, 1) (default: those of the operating system).
    """

    def __init__(
        self,
        serving: OutageServing,
        route: str,
        game: str,
        rules: DecisionRules,
        ticket: SharedTicket,
        *,
        answered_at: Callable[[], float],
        draw: Callable[[], float] = _DRAW,
    ) -> None:
        self._serving = serving
        self._route = route
        self._game = game
        self._rules = rules
        self._ticket = ticket
        self._answered_at = answered_at
        self._draw = draw

    async def decide(self, uncertainty: float, features: Features | None) -> Decision | None:
        """The decision of a request that is no round; none if the expert must answer.

        Parameters
        ----------
        uncertainty: the score of the draft.
        features: what else is known of it, where the game learns scores.
        """
        if not self._serving.is_allowed(self._answered_at(), None):
            return None  # the draft took longer than the last terms may be used
        rules, ticket = self._rules, self._ticket
        scores = draft_scores(rules, uncertainty, self._draw(), ticket.models, features if rules.learns else None)
        decision = decide_on_terms(rules, ticket.terms, scores, 0, self._draw())
        if not decision.serve_draft:
            return None
        try:
            await self._serving.drafts.add(self._game)
        except OSError as error:
            log.error(
                "a draft could not be counted while Redis is gone: the expert answers",
                extra={"route": self._route, "file": str(self._serving.drafts.path), "error": str(error)},
            )
            return None
        self._serving.metrics.count("bpac_outage_drafts_total", route=self._route)
        return decision
