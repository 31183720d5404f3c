"""What the paper prints or says, as statements that are checked against measured figures."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bpac.replay.studies.reporting.replay_results import METRICS, ReplayResult

# Results by stream and method.
Measured = Mapping[tuple[str, str], ReplayResult]
SHORT = {"empirical_risk": "ER", "expert_call_rate": "ECP", "token_ratio": "TP", "threshold": "threshold"}
PAPER_RUNS = 100
# Two means differ if they are further apart than this many standard errors.
STANDARD_ERRORS = 3.0
# Two standard deviations differ if one is more than this many times the other.
SPREAD_FACTOR = 2.0
# Below this many runs a standard deviation says little.
RUNS_FOR_SPREAD = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a statement of the paper holds for the measured figures.

    Parameters
    ----------
    said: what the paper prints or says.
    paper, ours: the figures, as shown.
    holds: whether it holds.
    because: why it does not; empty if it does.
    printed, measured: mean and standard deviation as fractions, for statements that are numbers; empty else.
    """

    said: str
    paper: str
    ours: str
    holds: bool
    because: str = ""
    printed: tuple[float, float | None] | None = None
    measured: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a section: whether all statements hold, and why not."""

    agrees: bool
    words: str


class Statement(Protocol):
    """A statement that can be checked."""

    def check(self, measured: Measured) -> Finding:
        """Whether it holds for these figures."""


def mark_of(findings: Sequence[Finding], runs: int, usual: str = "") -> Mark:
    """The mark of a section.

    Parameters
    ----------
    findings: what was found.
    runs: the number of runs.
    usual: the reason of differences that have none of their own; empty if none is known.
    """
    differing = [finding for finding in findings if not finding.holds]
    if not differing:
        return Mark(True, "agrees")
    reasons = []
    for finding in differing:
        few = f"only {runs} runs were made, where the paper made {PAPER_RUNS}" if runs < PAPER_RUNS else ""
        unknown = f"“{finding.said}” does not hold here, and no reason is known"
        reasons.append(finding.because or usual or few or unknown)
    return Mark(False, f"differs, because {'; '.join(dict.fromkeys(reasons))}")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number that the paper prints, with its digits.

    Parameters
    ----------
    part, method, metric: what it is about.
    mean: the number as printed: ER as a fraction, ECP and TP as percentages.
    std: the standard deviation as printed; empty if there is none.
    because: why ours differs, if it does and the reason is known.
    """

    part: str
    method: str
    metric: str
    mean: str
    std: str = ""
    because: str = ""

    def check(self, measured: Measured) -> Finding:
        """Whether the difference of the means is within three standard errors and the rounding of the print."""
        unit = 1.0 if self.metric == "empirical_risk" else 0.01
        printed, spread = unit * float(self.mean), unit * float(self.std) if self.std else None
        result = measured[self.part, self.method]
        runs, (mean, std) = len(result.paths), result.final(self.metric)
        rounding = 0.5 * unit * 10.0 ** -len(self.mean.partition(".")[2])
        errors = math.hypot((std if spread is None else spread) / math.sqrt(PAPER_RUNS), std / math.sqrt(runs))
        holds = abs(mean - printed) <= STANDARD_ERRORS * errors + rounding
        if spread is not None and runs >= RUNS_FOR_SPREAD:
            holds = holds and spread / SPREAD_FACTOR <= std <= spread * SPREAD_FACTOR
        shown = f"{100 * printed:.4g}" + (f" ± {100 * spread:.4g}" if spread is not None else "")
        return Finding(
            f"{self.part}, {self.method}: {SHORT[self.metric]}",
            f"{shown} %",
            f"{100 * mean:.2f} ± {100 * std:.2f} %",
            holds,
            "" if holds else self.because,
            (printed, spread),
            (mean, std),
        )


def _final(measured: Measured, part: str, method: str, metric: str) -> float:
    return measured[part, method].final(metric)[0]


def _shown(metric: str, value: float) -> str:
    return f"{value:.3f}" if metric == "threshold" else f"{100 * value:.1f} %"


@dataclass(frozen=True, slots=True)
class StaysBelow:
    """The average loss of each method, as mean over the runs, stays below its ε at every recorded step."""

    part: str
    methods: tuple[str, ...]

    def check(self, measured: Measured) -> Finding:
        """Whether it does."""
        results = [measured[self.part, method] for method in self.methods]
        highest = [float(result.paths[:, METRICS.index("empirical_risk")].mean(axis=0).max()) for result in results]
        limits = [result.method.epsilon for result in results]
        several = len(self.methods) > 1
        said = "ER stays below each ε throughout" if several else f"{self.methods[0]}: ER stays below ε throughout"
        return Finding(
            f"{self.part}{': ' if several else ', '}{said}",
            f"below {', '.join(f'{100 * limit:g}' for limit in limits)} %",
            f"at most {', '.join(f'{100 * value:.2f}' for value in highest)} %",
            all(value < limit for value, limit in zip(highest, limits, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class Breaks:
    """The average loss at the end of the stream is above ε."""

    part: str
    method: str

    def check(self, measured: Measured) -> Finding:
        """Whether it is."""
        risk, epsilon = (
            _final(measured, self.part, self.method, "empirical_risk"),
            measured[self.part, self.method].method.epsilon,
        )
        said = f"{self.part}, {self.method}: ER breaks ε"
        return Finding(said, f"above {100 * epsilon:g} %", f"{100 * risk:.2f} %", risk > epsilon)


@dataclass(frozen=True, slots=True)
class CallsNearlyAlways:
    """The expert is called nearly always: little is saved."""

    part: str
    method: str
    said: str
    least: float = 0.95

    def check(self, measured: Measured) -> Finding:
        """Whether it is."""
        calls = _final(measured, self.part, self.method, "expert_call_rate")
        said = f"{self.part}, {self.method}: {self.said}"
        return Finding(said, "no number", f"{100 * calls:.1f} % expert calls", calls >= self.least)


@dataclass(frozen=True, slots=True)
class Ordered:
    """One method is below all others by more than a gap, at the end of the stream.

    Parameters
    ----------
    part, metric: what is compared.
    lower: the method that is below.
    others: the methods that are above.
    said: what the paper says.
    gap: the least difference.
    """

    part: str
    metric: str
    lower: str
    others: tuple[str, ...]
    said: str
    gap: float = 0.0

    def check(self, measured: Measured) -> Finding:
        """Whether it is."""
        low = _final(measured, self.part, self.lower, self.metric)
        above = {name: _final(measured, self.part, name, self.metric) for name in self.others}
        shown = ", ".join(f"{name} {_shown(self.metric, value)}" for name, value in above.items())
        ours = f"{SHORT[self.metric]}: {self.lower} {_shown(self.metric, low)}; {shown}"
        return Finding(f"{self.part}: {self.said}", "no number", ours, low + self.gap < min(above.values()))


@dataclass(frozen=True, slots=True)
class Falls:
    """A metric falls from each method to the next one, at the end of the stream."""

    part: str
    metric: str
    methods: tuple[str, ...]
    said: str

    def check(self, measured: Measured) -> Finding:
        """Whether it does."""
        values = [_final(measured, self.part, method, self.metric) for method in self.methods]
        holds = all(later < earlier for earlier, later in itertools.pairwise(values))
        ours = " → ".join(_shown(self.metric, value) for value in values)
        return Finding(f"{self.part}: {self.said}", "no number", f"{SHORT[self.metric]}: {ours}", holds)


@dataclass(frozen=True, slots=True)
class Close:
    """Two methods end within a distance of each other."""

    part: str
    metric: str
    method: str
    other: str
    within: float
    said: str

    def check(self, measured: Measured) -> Finding:
        """Whether they do."""
        values = [_final(measured, self.part, name, self.metric) for name in (self.method, self.other)]
        shown = [
            f"{name} {_shown(self.metric, value)}"
            for name, value in zip((self.method, self.other), values, strict=True)
        ]
        holds = abs(values[0] - values[1]) <= self.within
        return Finding(f"{self.part}: {self.said}", "no number", f"{SHORT[self.metric]}: {'; '.join(shown)}", holds)


@dataclass(frozen=True, slots=True)
class Flat:
    """Several methods end within a distance of each other."""

    part: str
    metric: str
    methods: tuple[str, ...]
    within: float
    said: str

    def check(self, measured: Measured) -> Finding:
        """Whether they do."""
        values = [_final(measured, self.part, name, self.metric) for name in self.methods]
        ours = f"{SHORT[self.metric]}: {_shown(self.metric, min(values))} to {_shown(self.metric, max(values))}"
        return Finding(f"{self.part}: {self.said}", "no number", ours, max(values) - min(values) <= self.within)
