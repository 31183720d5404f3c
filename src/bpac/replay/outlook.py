"""What a replay means for an operator: one sentence, other policies beside it, and whether the table is long enough."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from bpac.dashboard.estimates.clean_rounds import clean_rounds_needed
from bpac.replay.oracle import oracle_policy
from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory, suited_to
from bpac.replay.tables.table import Table
from bpac.routing.coins import SeededCoins
from bpac.routing.policies import named_policy

# The policies that a replay is compared with, those with a promise first.
COMPARED = ("portfolio", "budget", "paper", "hoeffding", "never", "oracle")


def headline(report: Mapping[str, Any]) -> str:
    """The result of a replay in one sentence.

    Parameters
    ----------
    report: the report with ``epsilon``, ``expert_call_rate``, ``empirical_risk`` and ``token_ratio``.

    >>> told = {"epsilon": 0.05, "expert_call_rate": {"mean": 0.4}, "empirical_risk": {"mean": 0.032}}
    >>> headline(told | {"token_ratio": {"mean": 0.59}})
    'You would save 41 % of tokens at 3.2 % loss (ε = 5 %)'
    >>> headline(told | {"token_ratio": {"mean": 1.03}})
    'You would spend 3 % more tokens than with the expert alone, at 3.2 % loss (ε = 5 %)'
    """
    calls, risk = report["expert_call_rate"]["mean"], report["empirical_risk"]["mean"]
    ratio = report["token_ratio"]["mean"] if report["token_ratio"] else None
    epsilon = f"ε = {percent(report['epsilon'])}"
    more = f"at {percent(risk)} loss" + (", more than allowed" if risk > report["epsilon"] else "")
    spent = calls if ratio is None else ratio
    unit = "expert calls (tokens are unknown)" if ratio is None else "tokens"
    if percent(abs(1.0 - spent)) == percent(0.0):
        return f"You would save nothing {more} ({epsilon})" if calls < 1.0 else f"You would save nothing ({epsilon})"
    if spent < 1.0:
        return f"You would save {percent(1.0 - spent)} of {unit} {more} ({epsilon})"
    return f"You would spend {percent(spent - 1.0)} more tokens than with the expert alone, {more} ({epsilon})"


def percent(share: float) -> str:
    """A share in percent, with a decimal where it is small.

    >>> percent(0.414), percent(0.032), percent(0.05), percent(0.0004)
    ('41 %', '3.2 %', '5 %', '0 %')
    """
    value = 100.0 * share
    return f"{round(value, 1):.1f}".removesuffix(".0") + " %" if value < 10.0 else f"{value:.0f} %"


def least_rounds(make_router: RouterFactory) -> int | None:
    """The least number of rounds, all without loss, after which a policy may accept a first draft; none if any may."""
    return clean_rounds_needed(make_router(SeededCoins(0)))


def too_short(policy: str, needed: int | None, rows: int, epsilon: float, alpha: float) -> str | None:
    """What to say of a table that is too short for a policy to accept any draft; none if it is long enough.

    Parameters
    ----------
    policy: the name of the policy.
    needed: the least number of rounds without loss that it needs.
    rows: the number of rows of the table.
    epsilon, alpha: what is promised.
    """
    if needed is None or needed < rows:
        return None
    return (
        f"the table is too short: at ε = {epsilon:g} and α = {alpha:g} the policy {policy} accepts no draft before "
        f"{needed:,} rounds without a single loss, and the table has {rows:,}: record more, or allow a larger ε or α"
    )


@dataclass(frozen=True, slots=True)
class PolicyOutlook:
    """What one policy would have done.

    Parameters
    ----------
    policy: its name.
    expert_call_rate, empirical_risk, token_ratio: means over the runs; the last is none if tokens are unknown.
    least_rounds: the least number of rounds without loss before it accepts a draft; none if it needs none.
    """

    policy: str
    expert_call_rate: float
    empirical_risk: float
    token_ratio: float | None
    least_rounds: int | None


def compared(
    replay: Replay, make_router: RouterFactory, policies: Sequence[str] = COMPARED, recorded: Table | None = None
) -> list[PolicyOutlook]:
    """What other policies would have done on the same runs, with the same ε and α and their own exploration.

    Parameters
    ----------
    replay: the replay; its policy is not used.
    make_router: makes routers with ε and α.
    policies: the names of the policies.
    recorded: the table as it was recorded, if rows are repeated in that of the replay (default: that of the replay).
    """
    found = []
    for name in policies:
        if name == "oracle":
            policy = oracle_policy(replay.table, make_router.epsilon)
        else:
            policy = suited_to(named_policy(name, None, None), recorded or replay.table)
        maker = replace(make_router, policy=policy, exploration=None)
        runs = replace(replay, make_router=maker).run_all()
        ratios = [run.token_ratio for run in runs if run.token_ratio is not None]
        found.append(
            PolicyOutlook(
                name,
                fmean(run.expert_call_rate for run in runs),
                fmean(run.empirical_risk for run in runs),
                fmean(ratios) if ratios else None,
                least_rounds(maker),
            )
        )
    return found
