"""The paper's comparisons as data: which stream, which methods, what to look at."""

from dataclasses import dataclass
from typing import Literal

from bpac.arguments import one_of
from bpac.betting.wealth.bets import FixedBet
from bpac.replay.simulation.delays import Delay
from bpac.replay.start import Start
from bpac.routing.exploration.schedules import Constant, Exploration, TwoStage
from bpac.routing.policies import Hoeffding, Naive, Offline, Paper, Policy, Portfolio
from bpac.routing.settings import Settings

ALPHA = 0.1
# The two policies that most comparisons are about.
BOTH: tuple[tuple[str, Policy], ...] = (("paper", Paper()), ("portfolio", Portfolio()))


@dataclass(frozen=True, slots=True)
class RoutingMethod:
    """One line of a comparison.

    Parameters
    ----------
    label: what it is called in tables and figures.
    policy: what is replayed.
    epsilon: its promise.
    exploration: a schedule other than the policy's own.
    at: the value that is varied, in experiments that vary one.
    delay: when outcomes arrive.
    score: another score than the paper's.
    """

    label: str
    policy: Policy
    epsilon: float
    exploration: Exploration | None = None
    at: float | None = None
    delay: Delay = Delay()
    score: str = "uncertainty"

    @property
    def start(self) -> Start:
        """Makes the routers that play it."""
        return Start(self.policy, self.epsilon, ALPHA, self.exploration)

    @property
    def settings(self) -> Settings:
        """All settings of the routers that play it."""
        return Settings(self.epsilon, ALPHA, self.policy, self.exploration or self.policy.exploration)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A comparison of methods on one built-in stream.

    Parameters
    ----------
    name: what it is called on the command line.
    title: what it shows.
    stream: a built-in stream; every run draws it anew.
    methods: what is compared.
    varied: what ``at`` means, in experiments that vary something.
    rows: another length than the stream's own.
    view: what is drawn: the metrics over time, or the threshold.
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
    return Experiment(f"epsilon-{stream}", f"Promises from 0.05 to 0.10 on {stream}", stream, methods, "ε")


WARMUPS: dict[float, Exploration | None] = {steps: TwoStage(0.7, 0.05, steps) for steps in (10, 50, 100, 200, 300, 500)}
RATES: dict[float, Exploration | None] = {0.0: None} | {rate: Constant(rate) for rate in (0.05, 0.2, 0.3, 0.7)}

EXPERIMENTS = (
    Experiment(
        "offline",
        "Efficiency against offline PAC: one calibration cannot follow what is learnt later",
        "magpie-and-bbh",
        _compare(0.08, paper=Paper(), offline_PAC=Offline(), portfolio=Portfolio()),
    ),
    Experiment(
        "shift",
        "Safety under shift: MMLU-Pro-like questions, then BBH-like ones",
        "mmlu-pro-then-bbh",
        _compare(0.05, paper=Paper(), offline_PAC=Offline(), portfolio=Portfolio()),
    ),
    *(
        Experiment(
            f"baselines-{stream}",
            f"Against O-naive and IPS + Hoeffding on {stream}",
            stream,
            _compare(0.08, paper=Paper(), O_naive=Naive(), IPS_Hoeffding=Hoeffding(), portfolio=Portfolio()),
        )
        for stream in ("mmlu-pro-like", "bbh-like")
    ),
    *(_risks(stream) for stream in ("mmlu-pro-like", "math-like", "bbh-like", "magpie-like")),
    Experiment(
        "scores",
        "Other scores: perplexity and entropy in the place of 1 − mean token probability",
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
            f"The threshold over time, against that of offline PAC, on {stream}",
            stream,
            _compare(0.08, paper=Paper(), offline_PAC=Offline(), portfolio=Portfolio()),
            view="threshold",
        )
        for stream in ("magpie-like", "math-like")
    ),
    Experiment(
        "bets",
        "Adaptive against fixed bets of 0.05",
        "mmlu-pro-like",
        _compare(0.08, adaptive=Paper(), fixed=Paper(bet=FixedBet(0.05)), portfolio=Portfolio()),
    ),
    Experiment(
        "exploration",
        "Each policy's own schedule of exploration (at 0) against fixed rates",
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
        "The stall and its cure over 40,000 rounds",
        "mmlu-pro-like",
        _compare(0.08, paper=Paper(), portfolio=Portfolio(), latched=Portfolio(memory="latched")),
        rows=40_000,
    ),
    Experiment(
        "delays",
        "Late feedback costs little, lost feedback costs expert calls; neither costs the promise",
        "mmlu-pro-like",
        (
            RoutingMethod("portfolio", Portfolio(), 0.08),
            RoutingMethod("losses late by 60 requests", Portfolio(), 0.08, delay=Delay(mean=20.0, by_loss=True)),
            RoutingMethod("a tenth lost", Portfolio(), 0.08, delay=Delay(lost=0.1)),
            RoutingMethod("paper, losses late", Paper(), 0.08, delay=Delay(mean=20.0, by_loss=True)),
        ),
    ),
)


# What the paper prints for its own streams at ε = 0.08: ER, ECP and TP. Empty where it prints nothing.
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
