"""Monte-Carlo checks of the promise, on streams whose true risk is known exactly."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import joblib
import numpy as np
from tqdm import tqdm

from bpac.arguments import whole
from bpac.betting.bounds.fixed_sample import clopper_pearson_upper
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.events import Answered, Drafted, Event, delayed
from bpac.replay.simulation.faults import Faults
from bpac.replay.simulation.feed import RULES, Feed
from bpac.replay.simulation.laws import Law
from bpac.replay.simulation.load import NO_FAULTS, under_load
from bpac.replay.simulation.rules import Rules
from bpac.routing.coins import Coins, SeededCoins
from bpac.routing.journal.entries import Entry
from bpac.routing.router import Router

Promise = Literal["threshold", "served", "certificate"]
Start = Callable[[Coins, Callable[[Entry], object] | None], Router]


@dataclass(frozen=True, slots=True)
class StreamResult:
    """How one stream went.

    Parameters
    ----------
    broken: whether the promise was ever broken.
    threshold: the last threshold.
    unsafe: whether a threshold with a true risk above ε was ever in force, whatever the promise was about.
    expert_call_rate: share of rounds in which the expert was called; requests that it refuses are left out.
    rounds: queries that were decided; those without a score, or lost in a crash, are not.
    """

    broken: bool
    threshold: float
    unsafe: bool
    expert_call_rate: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Validation:
    """Streams to send through fresh routers.

    Parameters
    ----------
    start: makes a fresh router, given coins and journal.
    law: where queries come from.
    promise: what must not break: ``threshold`` (none with a true risk above ε is ever in force),
        ``served`` (the average loss really served never exceeds ε), or ``certificate`` (it never
        leaves its bounds).
    steps: queries in each stream.
    delay: when outcomes arrive.
    drafting: how many drafts are under way at once, and how long they take.
    faults: what goes wrong. After a crash a router is rebuilt from the journal, and the outcomes that were on their
        way are given up.
    rules: what the router is told of faults.
    """

    start: Start
    law: Law
    promise: Promise = "threshold"
    steps: int = 1000
    delay: Delay = Delay()
    drafting: Drafting = Drafting()
    faults: Faults = Faults()
    rules: Rules = RULES

    def __post_init__(self) -> None:
        whole(self.steps, "steps", 1)

    def stream(self, seed: int) -> StreamResult:
        """Send one stream through a fresh router."""
        rng = np.random.default_rng(seed)
        uncertainties, losses = (column.tolist() for column in self.law.draw(self.steps, rng))
        coins = SeededCoins(int(rng.integers(1 << 63)))
        entries: list[Entry] = []
        journal = entries.append if self.faults.crash_every else None
        feed = Feed(
            self.start(coins, journal),
            tickets=self.drafting.tickets and self.drafting.in_flight > 1,
            rules=self.rules,
            rebuild=lambda: Router.rebuild(entries, coins=coins, journal=journal),
        )
        terms = feed.router.settings.terms
        rounds = zip(uncertainties, losses, strict=True)
        certifies = self.promise == "certificate"
        highest, served, broken = 0.0, 0.0, False
        decided = asked = calls = 0
        # Between two rounds nothing can go wrong with a certificate unless a loss was served or an outcome moved it.
        latest, stirred = 0, False
        for event in self._events(rounds, rng, feed):
            if stirred and isinstance(event, Drafted):
                broken = broken or (certifies and _missed(feed.router, served))
                stirred = False
            decision = feed.take(event)
            if decision is None:
                continue
            if isinstance(event, Answered):
                stirred = stirred or event.loss != 0.0 or event.query != latest
            elif isinstance(event, Drafted):
                latest, decided = event.query, decided + 1
                highest = max(highest, decision.threshold)
                if not event.refused:
                    asked += 1
                    calls += decision.call_expert
                loss = terms.epsilon if event.refused else event.loss  # refused: as MATH section 13 counts it
                if decision.serve_draft and loss > 0.0:
                    served += loss
                    stirred = True
                    broken = broken or (self.promise == "served" and served > terms.epsilon * decided)
        if stirred and certifies and not broken:
            broken = _missed(feed.router, served)
        # Risk never falls with the threshold, so the highest one tells.
        unsafe = terms.kept_share * self.law.risk(highest) > terms.epsilon + 1e-12
        broken = unsafe if self.promise == "threshold" else broken
        return StreamResult(broken, feed.router.threshold, unsafe, calls / max(asked, 1), decided)

    def _events(self, rounds: Iterable[tuple[float, float]], rng: np.random.Generator, feed: Feed) -> Iterator[Event]:
        if self.drafting.in_flight == 1 and self.faults == NO_FAULTS:
            return delayed(rounds, self.delay, rng)

        def accepting() -> bool:
            return feed.router.threshold > 0.0

        return under_load(rounds, self.drafting, self.delay, rng, faults=self.faults, accepting=accepting)

    def run(self, streams: int, seed: int = 0, *, workers: int = -1) -> list[StreamResult]:
        """Send many streams through fresh routers, on all cores, with a progress bar on standard error."""
        whole(streams, "streams", 1)
        whole(seed, "seed", 0)
        parallel = joblib.Parallel(n_jobs=workers, batch_size="auto", return_as="generator")
        results: Any = parallel(joblib.delayed(self.stream)(seed + number) for number in range(streams))
        return list(tqdm(results, total=streams, desc="streams", unit="stream", leave=False, mininterval=0.5))


def _missed(router: Router, served: float) -> bool:
    certificate = router.certificate()
    # The bounds are solved for numerically; a millionth of a loss is no miss.
    return not certificate.lower - 1e-6 <= served <= certificate.upper + 1e-6


def upper_95(violations: int, streams: int) -> float:
    """Exact upper 95 % bound on the chance of a violation."""
    return clopper_pearson_upper(violations, streams, 0.05)
