"""The certificate compared with the actual loss, which only a replay can know."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.betting.bounds.certificate import ServedLoss
from bpac.betting.bounds.fixed_sample import binomial_cdf
from bpac.replay.figures import certificate_panels
from bpac.replay.parallel import Arrays
from bpac.replay.studies.methods import ALPHA, RoutingMethod
from bpac.replay.studies.on_tables.guesses_by_score import GuessesByScore
from bpac.replay.studies.reporting.replay_results import fingerprint, recorded_steps
from bpac.replay.studies.reporting.report import ReportSection, TableOfNumbers
from bpac.replay.studies.study import ResultsFolder, percent, share_with_bound
from bpac.replay.tables.builtin import builtin_table
from bpac.routing.coins import SeededCoins
from bpac.routing.policies import Portfolio

EPSILON = 0.08


@dataclass(frozen=True, slots=True)
class CertificateTask:
    """A method on a built-in table, with its certificate over time.

    Parameters
    ----------
    method: the method.
    stream: name of the built-in table.
    """

    method: RoutingMethod
    stream: str

    def key(self) -> dict[str, Any]:
        """Everything that its numbers depend on."""
        stream = fingerprint(builtin_table(self.stream))
        return {"settings": self.method.settings.to_json(), "stream": stream, "others": "with guesses by score"}

    def run(self, number: int) -> dict[str, NDArray[Any]]:
        """The ``bounds`` ``[lower, actual, upper]`` of the loss per round, at each recorded step, and others.

        The ``others`` are upper bounds, too: ``[four rates, best rate, one look, guesses by score]``, see
        ``ServedLoss.best_upper``, ``best_at_one_look`` and ``GuessesByScore``.
        """
        table = builtin_table(self.stream, number)
        router = self.method.make_router(SeededCoins(number))
        steps = recorded_steps(len(table))
        wanted = set(steps.tolist())
        plain, guessing = ServedLoss(router.settings.terms, ALPHA), GuessesByScore(router.settings.terms, ALPHA)
        floor, seen, rest, kept = router.settings.terms.floor, 0, 0.0, 0
        served, bounds, others = 0.0, [], []
        rounds = zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True)
        for step, (uncertainty, loss) in enumerate(rounds, start=1):
            decision = router.decide(uncertainty)
            guessing.add(decision, loss)
            served += loss * decision.serve_draft
            kept += decision.serve_draft
            at_floor = decision.propensity == floor
            rest += loss * decision.serve_draft * (not at_floor)
            if decision.call_expert:
                router.observe(decision, loss)
                plain.resolve(decision, loss)
                seen += at_floor and loss > 0.0
            if step in wanted:
                certificate = router.certificate()
                bounds.append([certificate.lower / step, served / step, certificate.upper / step])
                best = min(rest + best_at_one_look(seen, floor, ALPHA), kept)
                in_hindsight = router.summary().best_average_upper
                by_score = min(guessing.upper(), kept) / step
                others.append([plain.certificate(step, kept).upper / step, in_hindsight, best / step, by_score])
        return {"steps": steps, "bounds": np.array(bounds).T, "others": np.array(others).T}


def best_at_one_look(seen: int, rate: float, alpha: float) -> int:
    """The best possible upper bound on the losses of 0 or 1 that were not seen, for a look at one moment only.

    Of ``n`` losses, those that a coin chose to see are binomial. A bound that holds at all moments must be larger.

    Parameters
    ----------
    seen: the losses that were seen.
    rate: the probability with which each is seen.
    alpha: the probability with which the bound may fail.

    >>> best_at_one_look(10, 0.05, 0.1)
    295
    """
    low, high = seen, seen + 1
    while binomial_cdf(seen, high, rate) > alpha:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_cdf(seen, middle, rate) <= alpha else (middle, high)
    return low - seen


@dataclass(frozen=True, slots=True)
class CertificateStudy:
    """The bounds of the certificate, beside the actual loss."""

    name: str = "certificate"

    def tasks(self) -> list[CertificateTask]:
        """A stream without a distribution shift and one with it: the certificate holds on any stream."""
        method = RoutingMethod("portfolio", Portfolio(), EPSILON)
        return [CertificateTask(method, stream) for stream in ("mmlu-pro-like", "mmlu-pro-then-bbh")]

    def section(self, results: Sequence[Arrays], folder: ResultsFolder) -> ReportSection:
        """The bounds at the end, and how often they missed the actual loss at any recorded step."""
        named = {task.stream: arrays for task, arrays in zip(self.tasks(), results, strict=True)}
        rows, numbers = [], []
        for stream, arrays in named.items():
            lower, served, upper = (arrays["bounds"][:, k] for k in range(3))
            missed = ((served < lower - 1e-9) | (served > upper + 1e-9)).any(axis=1)
            final = [float(part[:, -1].mean()) for part in (lower, served, upper)]
            final += [float(arrays["others"][:, k, -1].mean()) for k in range(4)]
            rows.append([stream, *map(percent, final), share_with_bound(int(missed.sum()), len(served))])
            numbers.append((stream, *final, float(missed.mean())))
        columns = ["stream", "lower_bound", "actual_loss", "upper_bound", "four_rates"]
        columns += ["best_rate", "one_look", "guesses_by_score", "missed_share"]
        folder.write_csv(self.name, columns, numbers)
        panels = folder.write_figure(self.name, certificate_panels(named, EPSILON), 2)
        text = (
            f"Two bounds on the average loss of the served answers, each at level α = {ALPHA:g}, valid at all times "
            "together, and computed without the loss of any kept draft. Beside the upper bound are the one with four "
            "rates and no guess; that of the best rate, which is known in hindsight only and which no mixture of rates "
            "falls below; the best possible one if the operator looks at the last moment only; and one whose guess for "
            "each draft is learned from the audits of similar scores instead of being the same for all. "
            f"{len(results[0]['bounds'])} runs, checked at {results[0]['steps'].shape[1]} steps in each."
        )
        header = [
            *("stream", "lower bound", "actual loss", "upper bound", "with four rates"),
            *("best rate in hindsight", "best at one look", "with guesses by score"),
            "bounds missed at any step",
        ]
        return ReportSection(
            self.name, "The certificate and the actual loss", text, panels, TableOfNumbers(header, rows)
        )
