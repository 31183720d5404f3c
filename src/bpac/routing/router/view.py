"""The read-only half of a router: where it stands."""

from typing import Any

from bpac.arguments import fraction
from bpac.betting.bounds.certificate import Certificate
from bpac.errors import InputError
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Expected
from bpac.routing.journal.snapshot import take_snapshot
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.learning.standing import ScoreStanding, standings
from bpac.routing.router.parts import RouterParts
from bpac.routing.settings import Settings
from bpac.routing.summary import Summary
from bpac.routing.tickets.ticket import Ticket


class RouterView(RouterParts):
    """What can be asked of a router. Asking changes no decision.

    >>> from bpac import Router
    >>> Router(epsilon=0.05)
    <Router Portfolio, epsilon=0.05, alpha=0.1, step=0, threshold=0.0, epoch=1>
    """

    def __repr__(self) -> str:
        with self._lock:
            settings = self.settings
            return (
                f"<Router {type(settings.policy).__name__}, epsilon={settings.epsilon}, alpha={settings.alpha}, "
                f"step={self.step}, threshold={self.threshold}, epoch={self.epoch}>"
            )

    @property
    def settings(self) -> Settings:
        """What this router promises, and how it keeps it."""
        return self._route.settings

    @property
    def threshold(self) -> float:
        """Drafts with an uncertainty below this are kept (û)."""
        with self._lock:
            self._route.charge()
            return self._route.bettor.threshold

    @property
    def step(self) -> int:
        """The number of decisions made."""
        return self._route.step

    @property
    def expected(self) -> Expected:
        """What is expected of the queries to come, as ``expect`` was told last."""
        return self._route.expected

    @property
    def labelled(self) -> int:
        """The number of rows of history that warm starts have fed."""
        return self._route.labelled

    @property
    def epoch(self) -> int:
        """The number of the current epoch: one more than the resets by the drift alarm."""
        return self._route.epoch

    @property
    def owed(self) -> tuple[Decision, ...]:
        """The audits that wait for their outcome, oldest first."""
        with self._lock:
            self._route.charge()
            return tuple(self._route.owed.values())

    @property
    def under_way(self) -> tuple[Ticket, ...]:
        """The tickets that are not done, oldest first."""
        with self._lock:
            return self._tickets.under_way()

    @property
    def held_up(self) -> tuple[int, int]:
        """Decided queries that wait for earlier ones to be decided, and earlier ones that are charged meanwhile."""
        with self._lock:
            arrivals = self._route.by_arrival and self._route.by_arrival.arrivals
            return (len(arrivals.held), len(arrivals.passed)) if arrivals else (0, 0)

    def certificate(self) -> Certificate:
        """Bounds on the loss served so far, valid whenever you look (MATH section 7)."""
        with self._lock:
            return self._route.certificate()

    def log_wealth(self, threshold: float) -> float:
        """Log-wealth of the bet that a threshold is safe; it is certified at ``log(1/alpha)``.

        Parameters
        ----------
        threshold: a number in [0, 1].
        """
        with self._lock:
            self._route.charge()
            wealth = getattr(self._route.bettor, "wealth", self._route.bettor)
            if not hasattr(wealth, "log_wealth"):
                raise InputError(f"{type(self.settings.policy).__name__} keeps no wealth that belongs to one threshold")
            return float(wealth.log_wealth(fraction(threshold, "threshold")))

    def worth_grading(self, decision: Decision) -> bool:
        """Whether the loss of an audit could still raise a threshold; if not, forfeiting it costs nothing.

        A loss counts only for the thresholds above its score. Where the bet on them has lost all but a share ``alpha``
        of its wealth, such a threshold is not going to be certified, and it makes no difference whether the loss is
        known or counts as 1. Rounds that wait for their outcome are taken to be won.

        Parameters
        ----------
        decision: what ``decide`` returned.

        >>> from bpac import Router
        >>> router = Router(epsilon=0.05, seed=1)
        >>> for _ in range(30):
        ...     router.observe(router.decide(0.6), loss=1.0)
        >>> [router.worth_grading(router.decide(uncertainty)) for uncertainty in (0.3, 0.9)]
        [True, False]
        """
        with self._lock:
            return self._grading_value.of(decision, self._route)

    def scores(self) -> tuple[ScoreStanding, ...]:
        """Where each score stands that competes, with those that were learned; none where no score is learned."""
        with self._lock:
            self._route.charge()
            return standings(self._route)

    def learned_models(self) -> tuple[FrozenModel | OwnScore, ...]:
        """The models whose scores compete after the first one, in order; an ``OwnScore`` where a fit did not join."""
        with self._lock:
            learning = self._route.learning
            return tuple(joined.model for joined in learning.joined) if learning is not None else ()

    def bettor_state(self) -> dict[str, Any]:
        """The state of the bettor in this epoch, as a snapshot would keep it."""
        with self._lock:
            self._route.charge()
            return self._route.bettor.state()

    def summary(self) -> Summary:
        """Where the router stands."""
        with self._lock:
            return Summary.of(self._route)

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON values, with which a later start need not read the whole journal."""
        with self._lock:
            return take_snapshot(self._route)
