"""Short texts for the ablations: schedules and bets as they are typed on a command line."""

from bpac.betting.wealth.bets import AdaptiveBet, Bet, FixedBet
from bpac.errors import InputError
from bpac.routing.exploration.learned_rates import GainDriven, WhileItPays
from bpac.routing.exploration.schedules import Constant, Exploration, TwoStage

SCHEDULES = (
    "two-stage[:WARMUP_RATE:DEPLOY_RATE:WARMUP_STEPS], constant:RATE, gain[:EAGERNESS:FLOOR:MOST] "
    "or while-it-pays[:HORIZON]"
)
BETS = "adaptive[:MAX_STAKE] or fixed[:SIZE]"


def parse_exploration(text: str) -> Exploration:
    """Read a schedule.

    >>> parse_exploration("two-stage:0.7:0.05:100").warmup_steps
    100
    """
    kind, *numbers = text.split(":")
    schedule: Exploration | None = None
    try:
        match kind, [float(number) for number in numbers]:
            case "two-stage", []:
                schedule = TwoStage()
            case "two-stage", [warmup, deploy, steps] if steps == int(steps):
                schedule = TwoStage(warmup, deploy, int(steps))
            case "constant", [rate]:
                schedule = Constant(rate)
            case "gain", []:
                schedule = GainDriven()
            case "gain", [eagerness, floor, most]:
                schedule = GainDriven(eagerness, floor, most)
            case "while-it-pays", []:
                schedule = WhileItPays()
            case "while-it-pays", [horizon] if horizon == int(horizon):
                schedule = WhileItPays(horizon=int(horizon))
    except (ValueError, OverflowError) as error:
        raise InputError(f"exploration {text!r} cannot be used ({error}); give {SCHEDULES}") from error
    if schedule is None:
        raise InputError(f"exploration {text!r} is not known; give {SCHEDULES}")
    return schedule


def parse_bet(text: str) -> Bet:
    """Read a bet of the paper's policies.

    >>> parse_bet("fixed:0.05").most(18.92)
    0.05
    """
    kind, *numbers = text.split(":")
    try:
        match kind, [float(number) for number in numbers]:
            case "adaptive", []:
                return AdaptiveBet()
            case "adaptive", [stake]:
                return AdaptiveBet(stake)
            case "fixed", []:
                return FixedBet()
            case "fixed", [size]:
                return FixedBet(size)
    except ValueError as error:
        raise InputError(f"bet {text!r} cannot be used ({error}); give {BETS}") from error
    raise InputError(f"bet {text!r} is not known; give {BETS}")
