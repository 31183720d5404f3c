"""Options that ``replay`` and ``validate`` share: the policy, its settings, and the timing of drafts and outcomes."""

import argparse
from dataclasses import replace

from bpac.betting.wealth.bets import AdaptiveBet, Bet, FixedBet
from bpac.errors import InputError
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.drafting import DRAFT_TIMES, Drafting
from bpac.routing.exploration.gain_schedules import GainDriven, WhileItPays
from bpac.routing.exploration.schedules import Constant, Exploration, TwoStage
from bpac.routing.policies import MEMORIES, POLICIES, Paper, Policy, Portfolio, named_policy

SCHEDULES = (
    "two-stage[:WARMUP_RATE:DEPLOY_RATE:WARMUP_STEPS], constant:RATE, gain[:EAGERNESS:FLOOR:CEILING] "
    "or while-it-pays[:HORIZON]"
)
BETS = "adaptive[:MAX_STAKE] or fixed[:SIZE]"
# Baselines that make no promise.
WITHOUT_PROMISE = ("naive", "never", "always", "oracle")


def add_policy_options(parser: argparse.ArgumentParser, epsilon: float) -> None:
    """Add the shared options to a command.

    Parameters
    ----------
    parser: the command.
    epsilon: default of ``--epsilon``.
    """
    parser.add_argument(
        "--policy", choices=tuple(POLICIES), default="portfolio", help="routing policy (default: portfolio)"
    )
    parser.add_argument(
        "--memory",
        choices=MEMORIES,
        help="whether the portfolio keeps a certified threshold until a drift alarm (alarmed), only while the "
        "evidence supports it (revocable) or forever (latched) (default: alarmed)",
    )
    parser.add_argument(
        "--assume",
        choices=("iid", "any"),
        help="what the promise of the portfolio assumes about the stream: that requests are independent and "
        "identically distributed (iid), or nothing (any) (default: iid)",
    )
    parser.add_argument(
        "--exploration",
        metavar="SPEC",
        help=f"share of accepted drafts that are audited, as a schedule: {SCHEDULES}. two-stage: a higher rate for the "
        "first WARMUP_STEPS queries; constant: always the same; gain: in proportion to the "
        "traffic that looks safe and is not accepted yet; while-it-pays: a high rate as long as audits are worth their "
        "cost over the next HORIZON queries or more (default: that of the policy)",
    )
    parser.add_argument(
        "--dither",
        default="auto",
        metavar="SHARE",
        help="lower each score at random by at most this share of itself, so that the portfolio can accept a part of "
        "the drafts that have the same score; 0 for not at all (default: auto, which is 0.0156 for scores with few "
        "values and memory alarmed, else 0)",
    )
    parser.add_argument(
        "--bet", metavar="SPEC", help=f"bet of the policies paper and paper-prior: {BETS} (default: adaptive)"
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        default=epsilon,
        help=f"largest average loss that is allowed, between 0 and 1 (default: {epsilon})",
    )
    parser.add_argument(
        "--alpha", type=float, default=0.1, help="probability with which the promise may fail (default: 0.1)"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--delay",
        default="none",
        metavar="SPEC",
        help="when outcomes arrive. none: at once; independent:MEAN: after a random number of queries with this mean; "
        "losses:MEAN: the same, but three times as long for outcomes with a loss; lost:SHARE: never for this share of "
        "outcomes (at most 1/3), and for three times this share of those with a loss (default: none)",
    )
    parser.add_argument(
        "--in-flight", type=int, default=1, metavar="N", help="number of drafts in flight at once (default: 1)"
    )
    parser.add_argument(
        "--draft-time",
        default="none",
        metavar="SPEC",
        help=f"how long drafts take, relative to each other: {DRAFT_TIMES}; with losses:FACTOR, drafts with a loss "
        "take FACTOR times as long (default: none, all equally long)",
    )
    parser.add_argument(
        "--no-tickets",
        action="store_true",
        help="count queries in the order in which their drafts end instead of the order of arrival; this breaks the "
        "promise if drafts with a loss take longer",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def chosen_policy(options: argparse.Namespace) -> Policy:
    """The policy that the options name."""
    policy = named_policy(options.policy, options.memory, options.assume)
    if options.dither != "auto":
        if not isinstance(policy, Portfolio):
            raise InputError(f"--dither is an option of the policy portfolio, not of {options.policy}: remove it")
        policy = replace(policy, dither=parse_share(options.dither))
    if options.bet is None:
        return policy
    if not isinstance(policy, Paper):
        raise InputError(
            f"--bet is an option of the policies paper and paper-prior, not of {options.policy}: remove it"
        )
    return replace(policy, bet=parse_bet(options.bet))


def router_factory(options: argparse.Namespace, policy: Policy) -> RouterFactory:
    """Makes routers of a policy with the settings that the options name."""
    exploration = parse_exploration(options.exploration) if options.exploration else None
    return RouterFactory(policy, options.epsilon, options.alpha, exploration)


def chosen_drafting(options: argparse.Namespace) -> Drafting:
    """How drafts are made, as the options say."""
    return Drafting.parse(options.draft_time, options.in_flight, tickets=not options.no_tickets)


def parse_share(text: str) -> float:
    """Read a share below 1.

    >>> parse_share("0.02")
    0.02
    """
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share < 1.0:
        raise InputError(f"--dither {text}: give auto, or a number from 0 to below 1")
    return share


def parse_exploration(text: str) -> Exploration:
    """Read an exploration schedule.

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
