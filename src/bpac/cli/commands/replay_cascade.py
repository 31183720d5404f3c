"""The command ``replay`` for tables of a cascade: what it would have cost on recorded answers."""

import argparse
import json
import statistics
from collections.abc import Mapping
from typing import Any

from bpac.cli.policy_options import parse_exploration
from bpac.errors import InputError
from bpac.replay.cascade.comparison import oracle_cost, pair_cost
from bpac.replay.cascade.reading import default_prices, open_cascade, prices_from_text
from bpac.replay.cascade.replay import CascadeReplay
from bpac.replay.metrics import mean_and_std
from bpac.routing.cascade.policy import Cascade

# Options of ``replay`` that a cascade does not have, and what they are when they are not given.
OTHERS = {
    "policy": "portfolio",
    "assume": None,
    "bet": None,
    "dither": "auto",
    "score": "uncertainty",
    "learn": None,
    "delay": "none",
    "in_flight": 1,
    "draft_time": "none",
    "no_tickets": False,
    "trace": None,
    "figure": None,
    "html": None,
    "expert_correct_only": False,
    "expert_preferred_only": False,
}


def replay_cascade(options: argparse.Namespace, runs: int) -> int:
    """Replay a cascade and print the report.

    Parameters
    ----------
    options: the options of the command.
    runs: number of replays.
    """
    for name, usual in OTHERS.items():
        if getattr(options, name) != usual and not (name == "learn" and options.learn is False):
            raise InputError(
                f"--{name.replace('_', '-')} is for tables of two models, and {options.table} has more: leave it out"
            )
    table = open_cascade(options.table)
    prices = prices_from_text(options.prices) if options.prices else default_prices(options.table, table)
    if len(prices) != table.stages:
        raise InputError(f"--prices has {len(prices)} prices, and {options.table} has {table.stages} models")
    policy = Cascade(prices=prices, memory=options.memory or "alarmed")
    exploration = parse_exploration(options.exploration) if options.exploration else None
    replay = CascadeReplay(
        table, policy, options.epsilon, options.alpha, runs, options.seed, options.order, exploration
    )
    done = replay.run_all()
    pairs = [
        [
            pair_cost(table, stage, prices, options.epsilon, alpha=options.alpha, run=(options.seed, n))
            for n in range(runs)
        ]
        for stage in range(1, table.stages)
    ]
    ratios = [run.token_ratio for run in done if run.token_ratio is not None]
    report = {
        "table": str(options.table),
        "policy": "cascade",
        "memory": policy.memory,
        "epsilon": options.epsilon,
        "alpha": options.alpha,
        "runs": runs,
        "steps": len(table),
        "order": options.order,
        "seed": options.seed,
        "prices": list(prices),
        "cost": mean_and_std([run.cost for run in done]),
        "pair_costs": [mean_and_std(costs) for costs in pairs],
        "better_pair_cost": min(statistics.mean(costs) for costs in pairs),
        "oracle_cost": oracle_cost(table, prices, options.epsilon),
        "answered": [statistics.mean(run.answered[stage] for run in done) for stage in range(table.stages)],
        "expert_call_rate": mean_and_std([run.expert_call_rate for run in done]),
        "empirical_risk": mean_and_std([run.empirical_risk for run in done]),
        "token_ratio": mean_and_std(ratios),
        "threshold": mean_and_std([run.threshold for run in done]),
        "rules": sorted({run.rule for run in done}),
        "microseconds_per_step": 1e6 * statistics.median(run.seconds for run in done) / len(table),
    }
    print(json.dumps(report) if options.json else _text(report))
    return 0


def _text(report: Mapping[str, Any]) -> str:
    cost, better = report["cost"]["mean"], report["better_pair_cost"]
    answered = ", ".join(f"{share:.1%} by model {stage}" for stage, share in enumerate(report["answered"], start=1))
    pairs = ", ".join(f"{pair['mean']:.4g} with model {stage}" for stage, pair in enumerate(report["pair_costs"], 1))
    runs = f"{report['runs']} runs" if report["runs"] > 1 else "1 run"
    return "\n".join(
        (
            f"cascade on {report['table']}: {runs} of {report['steps']} queries, "
            f"ε = {report['epsilon']}, α = {report['alpha']}, prices {', '.join(f'{p:g}' for p in report['prices'])}",
            f"  cost          {cost:.4g} ± {report['cost']['std']:.2g} per query   ({cost / better - 1:+.1%} against "
            f"the better pair, oracle: {report['oracle_cost']:.4g})",
            f"  pairs         {pairs}",
            f"  answered      {answered}",
            f"  actual loss   {report['empirical_risk']['mean']:.2%}   (promised: risk of each threshold at most "
            f"{report['epsilon']:.2%})",
            f"  time          {report['microseconds_per_step']:.2f} µs per query",
        )
    )
