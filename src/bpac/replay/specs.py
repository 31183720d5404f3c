"""Short texts for the ablations: schedules and bets as they are typed on a command line."""

from bpac.betting.bets import AdaptiveBet, Bet, FixedBet
from bpac.errors import InputError
from bpac.routing.exploration import Constant, Exploration, GainDriven, TwoStage

SCHEDULES = "two-stage[:WARMUP_RATE:DEPLOY_RATE:WARMUP_STEPS], constant:RATE or gain[:GAIN:FLOOR:MOST]"
BETS = "adaptive[:MAX_STAKE] or fixed[:SIZE]"


def parse_exploration(text: str) -> Exploration:
    """Read a schedule.

    >>> parse_exploration("two-stage:0.7:0.05:100").warmup_steps
    100
    """
    kind, *numbers = text.split(":")
    try:
        match kind, [float(number) for number in numbers]:
            case "two-stage", []:
                return TwoStage()
            case "two-stage", [warmup, deploy, steps] if steps == int(steps):
                return TwoStage(warmup, deploy, int(steps))
            case "constant", [rate]:
                return Constant(rate)
            case "gain", []:
                return GainDriven()
            case "gain", [gain, floor, most]:
                return GainDriven(gain, floor, most)
    except (ValueError, OverflowError) as error:
        raise InputError(f"exploration {text!r} cannot be used ({error}); give {SCHEDULES}") from error
    raise InputError(f"exploration {text!r} is not known; give {SCHEDULES}")


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
