"""Monte-Carlo checks of the promises, on streams whose true risk is known exactly."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import joblib
import numpy as np
from tqdm import tqdm

from bpac.arguments import whole
from bpac.betting.bounds.fixed_sample import binomial_cdf, clopper_pearson_upper
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Answered, Drafted, Event, delayed
from bpac.replay.simulation.fault_rules import FaultRules
from bpac.replay.simulation.faults import Faults
from bpac.replay.simulation.gateway import FAULT_RULES, SimulatedGateway
from bpac.replay.simulation.laws import Law
from bpac.replay.simulation.load import NO_FAULTS, under_load
from bpac.replay.simulation.streams import PairStream, Streams
from bpac.routing.coins import Coins, SeededCoins
from bpac.routing.journal.entries import Entry
from bpac.routing.router import Router

# "threshold": no threshold with a true risk above ε is ever in force. "served": the average loss of the answers that
# were served never exceeds ε. "certificate": the sum of these losses is always within the bounds of the certificate.
Promise = Literal["threshold", "served", "certificate"]
MakeRouter = Callable[[Coins, Callable[[Entry], object] | None], Router]


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What happened on one stream.

    Parameters
    ----------
    broken: the promises that were broken at any time.
    threshold: the threshold at the end.
    expert_call_rate: share of rounds in which the expert was called; requests that it refuses are not counted.
    rounds: number of queries that were decided; those without a score, or lost in a crash, are not.
    """

    broken: frozenset[Promise]
    threshold: float
    expert_call_rate: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Validation:
    """Simulated streams that are sent through fresh routers, and the promises that are checked on them.

    Parameters
    ----------
    make_router: makes a fresh router, given its random source and its journal.
    law: distribution of the queries, of two models or of a cascade.
    steps: number of queries in each stream.
    delay: when outcomes arrive.
    drafting: how many drafts are in flight at once, and how long they take.
    faults: what goes wrong. After a crash a router is rebuilt from the journal, and the outcomes that had not arrived
        are given up.
    rules: what is reported to the router when something goes wrong.
    certificate: whether to check the promise ``certificate``, which takes time; the others are always checked.
    """

    make_router: MakeRouter
    law: Law | Streams
    steps: int = 1000
    delay: Delay = Delay()
    drafting: Drafting = Drafting()
    faults: Faults = Faults()
    rules: FaultRules = FAULT_RULES
    certificate: bool = False

    def __post_init__(self) -> None:
        whole(self.steps, "steps", 1)

    def stream(self, seed: int) -> StreamResult:
        """Send one stream through a fresh router."""
        rng = np.random.default_rng(seed)
        law = self.law
        stream = law.start(self.steps, rng) if isinstance(law, Streams) else PairStream(law, self.steps, rng)
        coins = SeededCoins(int(rng.integers(1 << 63)))
        entries: list[Entry] = []
        journal = entries.append if self.faults.crash_every else None
        router = self.make_router(coins, journal)
        gateway = stream.gateway(
            router,
            tickets=self.drafting.tickets and self.drafting.in_flight > 1,
            rules=self.rules,
            rebuild=lambda: type(router).rebuild(entries, coins=coins, journal=journal),
        )
        terms = router.settings.terms
        served, average_exceeded, bounds_missed = 0.0, False, False
        decided = counted = calls = 0
        # The certificate cannot become wrong in a round unless a loss was served or an outcome moved a bound.
        latest, changed = 0, False
        for event in self._events(stream.rounds, rng, gateway):
            if changed and isinstance(event, Drafted):
                bounds_missed = bounds_missed or (self.certificate and _missed(gateway.router, served))
                changed = False
            decision = gateway.handle(event)
            if decision is None:
                continue
            if isinstance(event, Answered):
                changed = changed or event.loss != 0.0 or event.query != latest
            elif isinstance(event, Drafted):
                latest, decided = event.query, decided + 1
                stream.decided(decision, gateway.router)
                if not event.refused:
                    counted += 1
                    calls += decision.call_expert
                if decision.serve_draft:
                    # Refused: as MATH section 13 counts it.
                    loss = terms.epsilon if event.refused else gateway.served_loss(event, decision)
                    served += loss
                    changed = changed or loss > 0.0
                    average_exceeded = average_exceeded or (loss > 0.0 and served > terms.epsilon * decided)
        if changed and self.certificate and not bounds_missed:
            bounds_missed = _missed(gateway.router, served)
        unsafe = terms.kept_share * stream.largest_risk() > terms.epsilon + 1e-12
        checked: dict[Promise, bool] = {
            "threshold": unsafe,
            "served": average_exceeded,
            "certificate": bounds_missed,
        }
        broken = frozenset(promise for promise, failed in checked.items() if failed)
        return StreamResult(broken, gateway.router.threshold, calls / max(counted, 1), decided)

    def _events(
        self, rounds: Iterable[tuple[float, float]], rng: np.random.Generator, gateway: SimulatedGateway
    ) -> Iterator[Event]:
        if self.drafting.in_flight == 1 and self.faults == NO_FAULTS:
            return delayed(rounds, self.delay, rng)

        def accepting() -> bool:
            return gateway.router.threshold > 0.0

        return under_load(rounds, self.drafting, self.delay, rng, faults=self.faults, accepting=accepting)

    def run(self, streams: int, seed: int = 0, *, workers: int = -1) -> list[StreamResult]:
        """Send many streams through fresh routers, with a progress bar on standard error.

        Parameters
        ----------
        streams: number of streams.
        seed: random seed of the first stream; each of the others has the next number.
        workers: number of processes; −1 for one per core.
        """
        whole(streams, "streams", 1)
        whole(seed, "seed", 0)
        parallel = joblib.Parallel(n_jobs=workers, batch_size="auto", return_as="generator")
        results: Any = parallel(joblib.delayed(self.stream)(seed + number) for number in range(streams))
        return list(tqdm(results, total=streams, desc="streams", unit="stream", leave=False, mininterval=0.5))


def _missed(router: Router, served: float) -> bool:
    certificate = router.certificate()
    # The bounds are computed numerically, to a precision better than this.
    return not certificate.lower - 1e-6 <= served <= certificate.upper + 1e-6


def upper_95(violations: int, streams: int) -> float:
    """Exact upper 95 % confidence bound on the probability of a violation."""
    return clopper_pearson_upper(violations, streams, 0.05)


def streams_needed(violations: int, streams: int, alpha: float) -> int | None:
    """A number of streams that would probably bring ``upper_95`` down to ``alpha``; none if 800,000 may be too few.

    Parameters
    ----------
    violations, streams: the streams so far; the share of violations is at most ``alpha``.
    alpha: the probability with which the promise may fail.

    >>> upper_95(0, 20) <= 0.1, streams_needed(0, 20, alpha=0.1)
    (False, 120)
    """
    # A few streams without a violation do not show that there will be none: half of what is allowed is expected then.
    rate = max(violations / streams, alpha / 2.0)
    rounded = (digits * 10**power for power in range(5) for digits in (10, 12, 15, 20, 25, 30, 40, 50, 60, 80))
    # The same as upper_95(…) <= alpha, without the search for the bound.
    enough = (more for more in rounded if more > streams and binomial_cdf(math.ceil(rate * more), more, alpha) <= 0.05)
    return next(enough, None)
