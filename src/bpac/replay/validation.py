"""Monte-Carlo checks of the promise, on streams whose true risk is known exactly."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import joblib
import numpy as np
from tqdm import tqdm

from bpac.betting.bounds import clopper_pearson_upper
from bpac.betting.numbers import whole
from bpac.replay.delays import Answered, Delay, delayed
from bpac.replay.laws import Law
from bpac.replay.replay import settle
from bpac.routing.coins import Coins, SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.journal import Entry
from bpac.routing.router import Router

Promise = Literal["threshold", "served", "certificate"]
Start = Callable[[Coins, Callable[[Entry], object] | None], Router]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one stream went.

    Parameters
    ----------
    broken: whether the promise was ever broken.
    threshold: the last threshold.
    unsafe: whether a threshold with a true risk above ε was ever in force, whatever the promise was about.
    expert_call_rate: share of rounds in which the expert was called.
    """

    broken: bool
    threshold: float
    unsafe: bool
    expert_call_rate: float


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
    steps: rounds in each stream.
    delay: when outcomes arrive.
    crash_every: rounds after which the process dies: outcomes under way are lost, and a router is
        rebuilt from the journal; 0 for never.
    """

    start: Start
    law: Law
    promise: Promise = "threshold"
    steps: int = 1000
    delay: Delay = Delay()
    crash_every: int = 0

    def __post_init__(self) -> None:
        whole(self.steps, "steps", 1)
        whole(self.crash_every, "crash_every", 0)

    def stream(self, seed: int) -> Verdict:
        """Send one stream through a fresh router."""
        rng = np.random.default_rng(seed)
        uncertainties, losses = (column.tolist() for column in self.law.draw(self.steps, rng))
        coins = SeededCoins(int(rng.integers(1 << 63)))
        entries: list[Entry] = []
        journal = entries.append if self.crash_every else None
        router = self.start(coins, journal)
        epsilon = router.settings.epsilon
        audits: dict[int, Decision] = {}
        highest, served, calls, broken = 0.0, 0.0, 0, False
        # Between two rounds nothing can go wrong with a certificate unless a loss was served or an outcome moved it.
        step, stirred = 0, False
        for event in delayed(zip(uncertainties, losses, strict=True), self.delay, rng):
            if isinstance(event, Answered):
                if audit := audits.pop(event.step, None):
                    settle(router, audit, event.loss)
                    stirred = stirred or event.loss != 0.0 or event.step < step
                continue
            if stirred and self.promise == "certificate" and not broken:
                broken = _missed(router, served)
            stirred = False
            step, uncertainty = event
            loss = losses[step - 1]
            if self.crash_every and step % self.crash_every == 0:
                audits.clear()  # what was on its way is lost
                router = Router.rebuild(entries, coins=coins, journal=journal)
                for decision in router.owed:
                    router.forfeit(decision, "crash")
            decision = router.decide(uncertainty)
            highest = max(highest, decision.threshold)
            if decision.serve_draft and loss > 0.0:
                served += loss
                stirred = True
                broken = broken or (self.promise == "served" and served > epsilon * step)
            if decision.call_expert:
                calls += 1
                audits[step] = decision
        if stirred and self.promise == "certificate" and not broken:
            broken = _missed(router, served)
        # Risk never falls with the threshold, so the highest one tells.
        unsafe = router.settings.terms.kept_share * self.law.risk(highest) > epsilon + 1e-12
        broken = unsafe if self.promise == "threshold" else broken
        return Verdict(broken, router.threshold, unsafe, calls / self.steps)

    def run(self, streams: int, seed: int = 0, *, workers: int = -1) -> list[Verdict]:
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
