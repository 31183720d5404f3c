"""The comparisons of the paper and similar ones as data: which table, which methods, which figure."""

from dataclasses import dataclass
from typing import Literal

from bpac.arguments import one_of
from bpac.betting.wealth.bets import FixedBet
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.routing.exploration.schedules import Constant, Exploration, TwoStage
from bpac.routing.policies import Hoeffding, Naive, Offline, Paper, Policy, Portfolio
from bpac.routing.settings import Settings

ALPHA = 0.1
# The two policies that most experiments compare.
BOTH: tuple[tuple[str, Policy], ...] = (("paper", Paper()), ("portfolio", Portfolio()))


@dataclass(frozen=True, slots=True)
class RoutingMethod:
    """A policy with its settings: one line of a comparison.

    Parameters
    ----------
    label: its name in tables and figures.
    policy: the routing policy.
    epsilon: promised bound on the loss.
    exploration: schedule of exploration (default: that of the policy).
    at: the value that is varied, in experiments that vary one.
    delay: when outcomes arrive.
    score: the score that routes the drafts (default: that of the paper).
    """

    label: str
    policy: Policy
    epsilon: float
    exploration: Exploration | None = None
    at: float | None = None
    delay: Delay = Delay()
    score: str = "uncertainty"

    @property
    def make_router(self) -> RouterFactory:
        """Makes routers with these settings."""
        return RouterFactory(self.policy, self.epsilon, ALPHA, self.exploration)

    @property
    def settings(self) -> Settings:
        """All settings of these routers."""
        return Settings(self.epsilon, ALPHA, self.policy, self.exploration or self.policy.exploration)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A comparison of methods on one table.

    Parameters
    ----------
    name: its name on the command line.
    title: what it shows.
    stream: name of a built-in table, which is generated again for every run, or of a given table.
    methods: the methods that are compared.
    varied: meaning of ``at``, in experiments that vary something.
    rows: number of rows (default: that of the built-in table).
    view: what the figure shows over time: the metrics or the threshold.
    """

    name: str
    title: str
    stream: str
    methods: tuple[RoutingMethod, ...]
    varied: str = ""
    rows: int | None = None
    view: Literal["metrics", "threshold"] = "metrics"


def _compare(epsilon: float, **policies: Policy) -> tuple[RoutingMethod, ...]:
    return tuple(RoutingMethod(label.replace("_", " "), policy, epsilon) for label, policy in policies.items())


def _vary(label: str, policy: Policy, schedules: dict[float, Exploration | None]) -> tuple[RoutingMethod, ...]:
    return tuple(RoutingMethod(label, policy, 0.08, schedule, at) for at, schedule in schedules.items())


def _risks(stream: str) -> Experiment:
    methods = tuple(
        RoutingMethod(label, policy, epsilon / 100, at=epsilon / 100)
        for label, policy in BOTH
        for epsilon in range(5, 11)
    )
    return Experiment(f"epsilon-{stream}", f"ε from 0.05 to 0.10 on {stream}", stream, methods, "ε")


WARMUPS: dict[float, Exploration | None] = {steps: TwoStage(0.7, 0.05, steps) for steps in (10, 50, 100, 200, 300, 500)}
RATES: dict[float, Exploration | None] = {0.0: None} | {rate: Constant(rate) for rate in (0.05, 0.2, 0.3, 0.7)}

EXPERIMENTS = (
    Experiment(
        "offline",
        "Compared with offline PAC, whose single calibration cannot use later feedback",
        "magpie-and-bbh",
        _compare(0.08, paper=Paper(), offline_PAC=Offline(), portfolio=Portfolio()),
    ),
    Experiment(
        "shift",
        "Distribution shift: MMLU-Pro-like questions, then BBH-like ones",
        "mmlu-pro-then-bbh",
        _compare(0.05, paper=Paper(), offline_PAC=Offline(), portfolio=Portfolio()),
    ),
    *(
        Experiment(
            f"baselines-{stream}",
            f"Compared with O-naive and IPS + Hoeffding on {stream}",
            stream,
            _compare(0.08, paper=Paper(), O_naive=Naive(), IPS_Hoeffding=Hoeffding(), portfolio=Portfolio()),
        )
        for stream in ("mmlu-pro-like", "bbh-like")
    ),
    *(_risks(stream) for stream in ("mmlu-pro-like", "math-like", "bbh-like", "magpie-like")),
    Experiment(
        "scores",
        "Other scores: perplexity and entropy instead of 1 − mean token probability",
        "mmlu-pro-like",
        tuple(
            RoutingMethod(f"{label}, {shown}", policy, 0.08, score=score)
            for label, policy in BOTH
            for score, shown in (
                ("uncertainty", "token probability"),
                ("perplexity", "perplexity"),
                ("entropy", "entropy"),
            )
        ),
    ),
    *(
        Experiment(
            f"threshold-{stream}",
            f"Threshold over time, compared with offline PAC, on {stream}",
            stream,
            _compare(0.08, paper=Paper(), offline_PAC=Offline(), portfolio=Portfolio()),
            view="threshold",
        )
        for stream in ("magpie-like", "math-like")
    ),
    Experiment(
        "bets",
        "Adaptive bets compared with fixed bets of 0.05",
        "mmlu-pro-like",
        _compare(0.08, adaptive=Paper(), fixed=Paper(bet=FixedBet(0.05)), portfolio=Portfolio()),
    ),
    Experiment(
        "exploration",
        "Each policy's own exploration schedule (at 0) compared with fixed rates",
        "mmlu-pro-like",
        (*_vary("paper", Paper(), RATES), *_vary("portfolio", Portfolio(), RATES)),
        "fixed exploration rate",
    ),
    Experiment(
        "warmup",
        "Length of the warm-up",
        "mmlu-pro-like",
        (*_vary("paper", Paper(), WARMUPS), *_vary("portfolio", Portfolio(), WARMUPS)),
        "rounds of warm-up",
    ),
    Experiment(
        "long",
        "40,000 rounds: the paper's policy stalls, the portfolio does not",
        "mmlu-pro-like",
        _compare(0.08, paper=Paper(), portfolio=Portfolio(), latched=Portfolio(memory="latched")),
        rows=40_000,
    ),
    Experiment(
        "delays",
        "Late feedback costs few expert calls, lost feedback costs more; the promise holds in both cases",
        "mmlu-pro-like",
        (
            RoutingMethod("portfolio", Portfolio(), 0.08),
            RoutingMethod("losses late by 60 requests", Portfolio(), 0.08, delay=Delay(mean=20.0, by_loss=True)),
            RoutingMethod("a tenth lost", Portfolio(), 0.08, delay=Delay(lost=0.1)),
            RoutingMethod("paper, losses late", Paper(), 0.08, delay=Delay(mean=20.0, by_loss=True)),
        ),
    ),
)


# ER, ECP and TP that the paper prints for its own data at ε = 0.08; empty where it prints none.
PUBLISHED = {
    "mmlu-pro-like": ("3 %", "47 %", "77–78 %"),
    "math-like": ("3 %", "", "68 %"),
    "bbh-like": ("", "", ""),
    "magpie-like": ("5.5 %", "19–23 %", "58–62 %"),
}
SUMMARY_EPSILON = 0.08


def named_experiment(name: str) -> Experiment:
    """The experiment of that name."""
    experiments = {experiment.name: experiment for experiment in EXPERIMENTS}
    one_of(name, "experiment", tuple(experiments))
    return experiments[name]
