"""The report of a replay as lines of text."""

from collections.abc import Mapping, Sequence
from typing import Any

from bpac.cli.options.hours_options import expert_cost_line
from bpac.cli.options.policy_options import WITHOUT_PROMISE
from bpac.cli.output import counted


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """The report as text; the first line is the result in one sentence."""
    several = report["runs"] > 1

    def percent(key: str) -> str:
        spread = report[key]
        if spread is None:
            return "unknown"
        return f"{spread['mean']:7.2%}" + (f" ± {spread['std']:.2%}" if several else "")

    threshold = report["threshold"]
    deviation = f" ± {threshold['std']:.2g}" if several else ""
    name = report["policy"] + (f" ({report['memory']})" if report["memory"] else "")
    if report["learn"]:
        name += f", with a score learned from {', '.join(report['learn'])},"
    oracle = "oracle without learning" if report["learn"] else "oracle"
    recorded = report["recorded_rows"]
    weighed = f" ({counted(recorded, 'audited row')}, repeated by their propensity)" if recorded else ""
    return [
        report["headline"],
        *([report["too_short"]] if report["too_short"] else []),
        f"{name} on {report['table']}: {counted(report['runs'], 'run')} "
        f"of {counted(report['steps'], 'query', 'queries')}{weighed}, "
        f"ε = {report['epsilon']}, α = {report['alpha']}",
        f"  expert calls  {percent('expert_call_rate')}   ({oracle}: {report['oracle_expert_call_rate']:.2%})",
        f"  actual loss   {percent('empirical_risk')}   ({_promise(report['policy'], report['epsilon'])})",
        f"  tokens        {percent('token_ratio')}   relative to always calling the expert",
        f"  threshold     {threshold['mean']:.4g}{deviation} at the end",
        *expert_cost_line(report),
        *([f"  cost          {report['cost']['mean']:.4g} per query"] if "cost" in report else []),
        f"  time          {report['microseconds_per_step']:.2f} µs per query",
        *_comparison(report.get("comparison") or ()),
        *([f"{report['html']} shows run 1 of {report['runs']:,}"] if report.get("html") else []),
    ]


def _comparison(policies: Sequence[Mapping[str, Any]]) -> list[str]:
    if not policies:
        return []
    lines = [f"  {'policy':12} {'expert calls':>12} {'actual loss':>12} {'tokens':>8}   first draft accepted after"]
    for one in policies:
        tokens = "unknown" if one["token_ratio"] is None else f"{one['token_ratio']:.1%}"
        needed = one["least_rounds"]
        after = "at once" if needed is None else f"{counted(needed, 'round')} without loss, or more"
        after += " (no promise)" if one["policy"] in WITHOUT_PROMISE else ""
        calls, risk = one["expert_call_rate"], one["empirical_risk"]
        lines.append(f"  {one['policy']:12} {calls:>12.1%} {risk:>12.2%} {tokens:>8}   {after}")
    return lines


def _promise(policy: str, epsilon: float) -> str:
    if policy in WITHOUT_PROMISE:
        return "this policy makes no promise"
    return f"promised: {'' if policy == 'budget' else 'risk of each threshold '}at most {epsilon:.2%}"
