"""The paper's figures and its second table as comparisons: methods, panels, and the statements that are checked.

Each function takes the streams, so that the same figure can be made from built-in tables and from tables of the user.
"""

from bpac.betting.wealth.bets import FixedBet
from bpac.replay.studies.comparison import Comparison, Part
from bpac.replay.studies.methods import B_PAC, PORTFOLIO, RoutingMethod, compared
from bpac.replay.studies.reporting.statements import (
    Breaks,
    CallsNearlyAlways,
    Close,
    Falls,
    Flat,
    Ordered,
    Statement,
    StaysBelow,
)
from bpac.replay.tables.builtin import HARD_FIRST
from bpac.routing.exploration.schedules import Constant, TwoStage
from bpac.routing.policies import Budget, Hoeffding, Naive, Offline, Paper, Policy, Portfolio

Parts = tuple[Part, ...]
EPSILON = 0.08
PAC, NAIVE, HOEFFDING = "offline PAC", "O-naive", "IPS+Hoeff"
CALIBRATED = (HARD_FIRST, "PAC is calibrated")
EPSILONS = (0.05, 0.06, 0.07, 0.08, 0.09, 0.10)
RATES = (0.05, 0.2, 0.3, 0.7)
WARMUPS = (10, 50, 100, 200, 300, 500)
OFFLINE = Offline(size=HARD_FIRST)
OFFLINE_COMPARED: dict[str, Policy] = {B_PAC: Paper(), PAC: OFFLINE, PORTFOLIO: Portfolio()}


def figure_1(parts: Parts) -> Comparison:
    """B-PAC and offline PAC, if calibration fell on harder questions."""
    return Comparison(
        "figure-1",
        "Offline PAC, calibrated on harder questions, saves nothing",
        parts,
        compared(EPSILON, OFFLINE_COMPARED),
        number="Figure 1",
        marks=(CALIBRATED,),
        statements=tuple(StaysBelow(part.label, (B_PAC,)) for part in parts),
    )


def figure_2(parts: Parts, change: int | None = None) -> Comparison:
    """B-PAC and offline PAC, if questions become harder after calibration."""
    return Comparison(
        "figure-2",
        "Offline PAC, calibrated on easier questions, breaks ε after a change",
        parts,
        compared(0.05, OFFLINE_COMPARED | {"budget": Budget()}),
        number="Figure 2",
        text=(
            "The portfolio promises safe thresholds on streams without drift, and returns to them after a change. Only "
            "the policy budget promises that ER stays below ε on any stream."
        ),
        marks=(CALIBRATED,) if change is None else (CALIBRATED, (change, "the questions change")),
        statements=tuple(StaysBelow(part.label, (B_PAC,)) for part in parts),
    )


def figure_3(parts: Parts) -> Comparison:
    """The online baselines."""
    statements: list[Statement] = []
    for part in parts:
        statements += [
            StaysBelow(part.label, (B_PAC,)),
            Breaks(part.label, NAIVE),
            CallsNearlyAlways(part.label, HOEFFDING, "calls the expert nearly always"),
        ]
    policies: dict[str, Policy] = {B_PAC: Paper(), NAIVE: Naive(), HOEFFDING: Hoeffding(), PORTFOLIO: Portfolio()}
    return Comparison(
        "figure-3",
        "Online baselines: O-naive breaks ε, IPS+Hoeff saves nothing",
        parts,
        compared(EPSILON, policies),
        number="Figure 3",
        statements=tuple(statements),
    )


def table_2(parts: Parts, scores: dict[str, str]) -> Comparison:
    """Other scores than the mean token probability.

    Parameters
    ----------
    parts: the streams.
    scores: for each score, its name in the table.
    """
    methods = tuple(
        RoutingMethod(f"{label}, {shown}", policy, EPSILON, score=score)
        for score, shown in scores.items()
        for label, policy in ((B_PAC, Paper()), (PORTFOLIO, Portfolio()))
    )
    return Comparison(
        "table-2",
        "Other scores: perplexity and entropy",
        parts,
        methods,
        number="Table 2",
        panels=(),
    )


def figure_5(parts: Parts) -> Comparison:
    """Six values of ε."""
    names = tuple(f"{B_PAC}, ε = {epsilon:g}" for epsilon in EPSILONS)
    methods = [
        RoutingMethod(name, Paper(), epsilon, line=f"{epsilon:.2f}")
        for name, epsilon in zip(names, EPSILONS, strict=True)
    ]
    methods += [RoutingMethod(f"{PORTFOLIO}, ε = {epsilon:g}", Portfolio(), epsilon) for epsilon in EPSILONS]
    statements: list[Statement] = []
    for part in parts:
        statements += [
            StaysBelow(part.label, names),
            Falls(part.label, "expert_call_rate", names, "ECP falls as ε grows"),
        ]
    return Comparison(
        "figure-5",
        "ε from 0.05 to 0.10",
        parts,
        tuple(methods),
        number="Figure 5",
        text="Each line has its ε beside it; dotted lines are the limits.",
        drawn=lambda method: bool(method.line),
        statements=tuple(statements),
    )


def figure_6(parts: Parts) -> Comparison:
    """The threshold over time, with that of offline PAC."""
    return Comparison(
        "figure-6",
        "The threshold over time, with that of offline PAC",
        parts,
        compared(EPSILON, OFFLINE_COMPARED),
        number="Figure 6",
        panels=("threshold", "expert_call_rate", "token_ratio"),
        marks=(CALIBRATED,),
    )


def ends_above(part: str) -> Ordered:
    """B-PAC's threshold ends above that of offline PAC."""
    return Ordered(part, "threshold", PAC, (B_PAC,), "B-PAC's threshold ends above PAC's")


def ends_close(part: str) -> tuple[Statement, ...]:
    """B-PAC's threshold comes close to that of offline PAC, and exploring costs a small gap."""
    return (
        Close(part, "threshold", B_PAC, PAC, 0.05, "B-PAC's threshold comes close to PAC's"),
        *(
            Close(part, metric, B_PAC, PAC, within, f"a small gap in {short} from exploring")
            for metric, short, within in (("expert_call_rate", "ECP", 0.1), ("token_ratio", "TP", 0.15))
        ),
    )


def figure_7(parts: Parts) -> Comparison:
    """Adaptive bets and fixed ones."""
    fixed = "fixed bet 0.05"
    policies: dict[str, Policy] = {B_PAC: Paper(), fixed: Paper(bet=FixedBet(0.05)), PORTFOLIO: Portfolio()}
    said = "with the adaptive bet ECP falls much faster"
    return Comparison(
        "figure-7",
        "Adaptive bets and a fixed bet of 0.05",
        parts,
        compared(EPSILON, policies),
        number="Figure 7",
        text="B-PAC is the version with the adaptive bet.",
        statements=tuple(Ordered(part.label, "expert_call_rate", B_PAC, (fixed,), said, 0.05) for part in parts),
    )


def figure_8(parts: Parts) -> Comparison:
    """Exploration in two stages and at fixed rates."""
    fixed = tuple(f"fixed {rate:g}" for rate in RATES)
    methods = [RoutingMethod(B_PAC, Paper(), EPSILON)]
    methods += [RoutingMethod(name, Paper(), EPSILON, Constant(rate)) for name, rate in zip(fixed, RATES, strict=True)]
    methods.append(RoutingMethod(PORTFOLIO, Portfolio(), EPSILON))
    said = "exploration in two stages has the lowest ECP"
    return Comparison(
        "figure-8",
        "Exploration in two stages and at fixed rates",
        parts,
        tuple(methods),
        number="Figure 8",
        text="B-PAC explores in two stages: 70 % of drafts during the warm-up of 200 questions, 5 % afterwards.",
        statements=tuple(Ordered(part.label, "expert_call_rate", B_PAC, fixed, said) for part in parts),
    )


def figure_9(parts: Parts) -> Comparison:
    """The length of the warm-up."""
    names = {steps: f"T_warm = {steps}" for steps in WARMUPS}
    methods = [
        RoutingMethod(name, Paper(), EPSILON, TwoStage(0.7, 0.05, steps), line=str(steps))
        for steps, name in names.items()
    ]
    methods.append(RoutingMethod(PORTFOLIO, Portfolio(), EPSILON))
    middle = tuple(names[steps] for steps in (50, 100, 200, 300))
    calls = "expert_call_rate"
    statements: list[Statement] = []
    for part in parts:
        statements += [
            Ordered(part.label, calls, names[100], (names[10],), "a warm-up of 10 is inefficient", 0.03),
            Ordered(part.label, calls, names[200], (names[500],), "a very long warm-up wastes expert calls"),
            Flat(part.label, calls, middle, 0.03, "the middle is flat"),
        ]
    return Comparison(
        "figure-9",
        "The length of the warm-up",
        parts,
        tuple(methods),
        number="Figure 9",
        text="Each line of B-PAC has its number of warm-up questions beside it.",
        statements=tuple(statements),
    )


def calibrated_on_hard(part: str) -> Statement:
    """Offline PAC saves nearly nothing."""
    return CallsNearlyAlways(
        part, PAC, "gains are negligible, because its threshold was calibrated on harder questions"
    )


def pac_breaks(part: str) -> Statement:
    """Offline PAC breaks ε."""
    return Breaks(part, PAC)
