"""Fit the shapes of the built-in tables to the figures that the paper prints: ``python -m scripts.fit_builtin_tables``.

The paper's policy is replayed on tables of many shapes. A compass search keeps the shape whose figures are closest to
the printed ones, each measured in units of its tolerance. Sizes of the tables and the range of each score are not
fitted. This writes ``builtin_shapes.json`` and prints every printed figure beside the fitted one.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import joblib
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory
from bpac.replay.tables import builtin
from bpac.replay.tables.builtin import BENCHMARKS, HARD_FIRST, BuiltinBenchmark
from bpac.replay.tables.table import Table, head, joined
from bpac.routing.policies import Offline, Paper, Policy

PACKAGE = Path(builtin.__file__).parent
EPSILON, ALPHA = 0.08, 0.1
# Offline PAC calibrates on this many questions.
CALIBRATION = Offline(size=HARD_FIRST)
PAPER = Paper()


@dataclass(frozen=True, slots=True)
class Stream:
    """What is replayed: a benchmark with a score, and hard questions before it, if any."""

    benchmark: str
    score: str = "uncertainty"
    hard_first: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A printed figure: its mean, its standard deviation if there is one, and how far the mean may be off."""

    stream: Stream
    metric: str
    mean: float
    tolerance: float
    std: float | None = None


MMLU, MATH = Stream("mmlu-pro-like"), Stream("math-like")
COMBINED = Stream("magpie-like", hard_first=True)


def _table_2(
    benchmark: str, score: str, risk: Sequence[float], calls: Sequence[float], tokens: Sequence[float]
) -> list[Target]:
    stream = Stream(benchmark, score)
    values = {"risk": risk, "calls": calls, "tokens": tokens}
    # A mean of 100 runs has a standard error of a tenth of their standard deviation.
    return [Target(stream, metric, mean, std / 10, std) for metric, (mean, std) in values.items()]


TARGETS = [
    Target(MMLU, "risk", 0.03, 0.003, 0.01),
    Target(MMLU, "calls", 0.4704, 0.01),
    Target(MMLU, "tokens", 0.7724, 0.01, 0.0994),
    Target(MMLU, "tokens", 0.7807, 0.01),
    *_table_2("mmlu-pro-like", "perplexity", (0.0319, 0.011), (0.4324, 0.0819), (0.7512, 0.0926)),
    *_table_2("mmlu-pro-like", "entropy", (0.0316, 0.012), (0.4308, 0.0866), (0.7459, 0.0983)),
    Target(MATH, "risk", 0.03, 0.003, 0.01),
    Target(MATH, "tokens", 0.6816, 0.01456, 0.1456),
    Target(MATH, "threshold", math.nan, 0.02),  # that of offline PAC
    Target(COMBINED, "calls", 0.1899, 0.008),
    Target(COMBINED, "tokens", 0.5863, 0.008),
    *_table_2("magpie-like", "perplexity", (0.0551, 0.007), (0.2276, 0.0757), (0.6169, 0.0722)),
    *_table_2("magpie-like", "entropy", (0.0552, 0.006), (0.2312, 0.0651), (0.6184, 0.0618)),
]


class Routed:
    """The decisions of a policy on a stream, which do not depend on the lengths of answers."""

    def __init__(self, runs: Sequence[tuple[NDArray[np.bool_], float, float]]) -> None:
        self.calls = [calls for calls, _, _ in runs]
        self.values = {
            "risk": np.array([risk for _, risk, _ in runs]),
            "calls": np.array([calls.mean() for calls in self.calls]),
            "threshold": np.array([threshold for _, _, threshold in runs]),
        }


def draw(shape: BuiltinBenchmark, stream: Stream, number: int) -> Table:
    """The table of a run, as ``builtin_table`` draws it."""
    table = shape.table(number, score=stream.score)
    if not stream.hard_first:
        return table
    return joined(head(BENCHMARKS["bbh-like"].table(number + 1, score=stream.score), HARD_FIRST), table)


def _run(
    shape: BuiltinBenchmark, stream: Stream, policy: Policy, number: int
) -> tuple[NDArray[np.bool_], float, float]:
    table = draw(shape, stream, number)
    replay = Replay(table, RouterFactory(policy, EPSILON, ALPHA), seed=number, order="given")
    _, path = replay.run(0)
    return path.call_expert, float((table.loss * path.serve_draft).mean()), path.threshold


class Fit:
    """The search for the shape of one benchmark.

    Parameters
    ----------
    name: the benchmark.
    runs: number of replays.
    workers: number of processes.
    """

    def __init__(self, name: str, runs: int, workers: int) -> None:
        self.name, self.runs, self.workers = name, runs, workers
        self.targets = [target for target in TARGETS if target.stream.benchmark == name]
        self._routed: dict[tuple[str, Stream, str], Routed] = {}

    def route(self, shape: BuiltinBenchmark, stream: Stream, policy: Policy = PAPER) -> Routed:
        """The decisions on a stream; they are computed once for each shape that gives other ones."""
        powers = {name: shape.powers[name] for name in ("uncertainty", stream.score)}
        plain = replace(shape, powers=powers, draft_tokens=1.0, expert_tokens=1.0, harder_is_longer=0.0)
        key = (json.dumps(asdict(plain)), stream, repr(policy))
        if key not in self._routed:
            parallel = joblib.Parallel(n_jobs=self.workers)
            runs = parallel(joblib.delayed(_run)(plain, stream, policy, number) for number in range(self.runs))
            self._routed[key] = Routed(runs)
        return self._routed[key]

    def measured(self, shape: BuiltinBenchmark, target: Target) -> tuple[float, float]:
        """Mean and standard deviation of the figure that a target is about."""
        routed = self.route(shape, target.stream)
        if target.metric == "tokens":
            ratios = []
            for number, calls in enumerate(routed.calls):
                table = draw(shape, target.stream, number)
                assert table.draft_tokens is not None
                assert table.expert_tokens is not None
                ratios.append((table.draft_tokens.sum() + table.expert_tokens[calls].sum()) / table.expert_tokens.sum())
            return float(np.mean(ratios)), float(np.std(ratios))
        values = routed.values[target.metric]
        return float(values.mean()), float(values.std())

    def error(self, shape: BuiltinBenchmark, metrics: Sequence[str]) -> float:
        """The sum of squared errors over the targets of these metrics, in units of their tolerances."""
        if any(shape.wrong * (power + 1.0) > 1.0 for power in shape.powers.values()):
            return math.inf  # a probability above 1
        total = 0.0
        for target in self.targets:
            if target.metric not in metrics:
                continue
            mean, std = self.measured(shape, target)
            total += ((mean - self.wanted(shape, target)) / target.tolerance) ** 2
            if target.std is not None:
                total += (math.log(std / target.std) / 0.3) ** 2
        return total

    def wanted(self, shape: BuiltinBenchmark, target: Target) -> float:
        """The mean that a target asks for."""
        if not math.isnan(target.mean):
            return target.mean
        return float(self.route(shape, target.stream, CALIBRATION).values[target.metric].mean())


Change = Callable[[BuiltinBenchmark, float], BuiltinBenchmark]


def _power(score: str) -> Change:
    return lambda shape, factor: replace(shape, powers=shape.powers | {score: shape.powers[score] * factor})


def _field(name: str) -> Change:
    return lambda shape, factor: replace(shape, **{name: getattr(shape, name) * factor})


def _smaller_losses(shape: BuiltinBenchmark, factor: float) -> BuiltinBenchmark:
    ratio = factor * shape.weights[1] / shape.weights[0]
    weights = [ratio**k for k in range(len(shape.sizes))]
    return replace(shape, weights=tuple(weight / sum(weights) for weight in weights))


def compass(
    error: Callable[[BuiltinBenchmark], float],
    start: BuiltinBenchmark,
    changes: Sequence[Change],
    step: float,
    least: float,
) -> BuiltinBenchmark:
    """Change one parameter at a time by a factor that shrinks towards 1, for as long as the error falls."""
    best, lowest = start, error(start)
    with tqdm(desc="fitting", unit="shape", mininterval=1.0, file=sys.stderr) as bar:
        while step > least:
            improved = False
            for change in changes:
                for factor in (1.0 + step, 1.0 / (1.0 + step)):
                    tried = change(best, factor)
                    found = error(tried)
                    bar.update()
                    if found < lowest:
                        best, lowest, improved = tried, found, True
                        bar.set_postfix(error=f"{lowest:.2f}")
                        break
            step = step if improved else step / 2.0
    return best


# What is fitted for each benchmark, besides the lengths of its answers.
FITTED: dict[str, list[Change]] = {
    "mmlu-pro-like": [_field("wrong"), *(_power(score) for score in builtin.SCORES)],
    "math-like": [_field("wrong"), _power("uncertainty")],
    "magpie-like": [_field("wrong"), _smaller_losses, *(_power(score) for score in builtin.SCORES)],
}


def fitted(name: str, runs: int, workers: int, step: float) -> BuiltinBenchmark:
    """The shape whose figures are closest to the printed ones; the search starts from the present shape."""
    fit = Fit(name, runs, workers)
    start = BENCHMARKS[name]
    shape = compass(lambda one: fit.error(one, ("risk", "calls", "threshold")), start, FITTED[name], step, 0.02)
    lengths = [_field("draft_tokens"), _field("harder_is_longer")]
    shape = compass(lambda one: fit.error(one, ("tokens",)), shape, lengths, step, 0.004)
    for target in fit.targets:
        mean, std = fit.measured(shape, target)
        wanted = fit.wanted(shape, target)
        spread = "" if target.std is None else f" ± {target.std:.4f}"
        where = f"{target.stream.benchmark}{', after hard questions' if target.stream.hard_first else ''}"
        sys.stdout.write(
            f"{where}, {target.stream.score}, {target.metric}: {wanted:.4f}{spread}, fitted {mean:.4f} ± {std:.4f}\n"
        )
    return shape


def rounded(shape: BuiltinBenchmark) -> dict[str, object]:
    """The shape as JSON, with four digits."""

    def short(value: object) -> object:
        if isinstance(value, float):
            return float(f"{value:.4g}")
        if isinstance(value, dict):
            return {name: short(one) for name, one in value.items()}
        return [short(one) for one in value] if isinstance(value, tuple) else value

    plain = {name: short(value) for name, value in asdict(shape).items()}
    # Sizes are square roots and weights must sum to 1: rounding would break both.
    return plain | {"sizes": shape.sizes, "weights": shape.weights}


def main() -> None:
    """Fit the shapes and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FITTED), help="benchmarks to fit (default: all)")
    parser.add_argument("--runs", type=int, default=100, help="number of replays of each shape (default: 100)")
    parser.add_argument(
        "--workers", type=int, default=-1, help="number of processes; -1 for one per core (default: -1)"
    )
    parser.add_argument("--step", type=float, default=0.12, help="first relative change (default: 0.12)")
    options = parser.parse_args()
    path = PACKAGE / "builtin_shapes.json"
    for name in options.names:
        shapes = json.loads(path.read_text(encoding="utf-8"))
        shapes[name] = rounded(fitted(name, options.runs, options.workers, options.step))
        path.write_text(json.dumps(shapes, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
