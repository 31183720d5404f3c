"""Comparisons of this package's own: what the paper does not show."""

from bpac.replay.simulation.delays import Delay
from bpac.replay.studies.comparison import Comparison, Part
from bpac.replay.studies.methods import B_PAC, PORTFOLIO, RoutingMethod, compared
from bpac.routing.exploration.schedules import Constant, TwoStage
from bpac.routing.policies import Paper, Portfolio

EPSILON = 0.08
MMLU = Part("MMLU-Pro", "mmlu-pro-like")
LATE = Delay(mean=20.0, by_loss=True)

OWN = (
    Comparison(
        "long",
        "40,000 rounds: B-PAC stalls, the portfolio does not",
        (Part("MMLU-Pro", "mmlu-pro-like", rows=40_000),),
        compared(EPSILON, {B_PAC: Paper(), PORTFOLIO: Portfolio(), "latched": Portfolio(memory="latched")}),
    ),
    Comparison(
        "exploration",
        "The portfolio's own exploration and other schedules",
        (MMLU,),
        (
            RoutingMethod(PORTFOLIO, Portfolio(), EPSILON),
            RoutingMethod("two stages", Portfolio(), EPSILON, TwoStage()),
            *(RoutingMethod(f"fixed {rate:g}", Portfolio(), EPSILON, Constant(rate)) for rate in (0.05, 0.2, 0.7)),
        ),
        text="The portfolio explores while it pays; B-PAC explores in two stages.",
    ),
    Comparison(
        "delays",
        "Late feedback costs few expert calls, lost feedback costs more; the promise holds in both cases",
        (MMLU,),
        (
            RoutingMethod(PORTFOLIO, Portfolio(), EPSILON),
            RoutingMethod("losses late", Portfolio(), EPSILON, delay=LATE),
            RoutingMethod("a tenth lost", Portfolio(), EPSILON, delay=Delay(lost=0.1)),
            RoutingMethod("B-PAC, losses late", Paper(), EPSILON, delay=LATE),
        ),
        text="“Late”: losses arrive 60 requests later, other outcomes 20 requests later, on average.",
    ),
)
