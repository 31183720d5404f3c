"""The command ``replay`` for tables of a cascade: what it would have cost on recorded answers."""

import argparse
import json
import statistics
from collections.abc import Mapping
from typing import Any

from bpac.cli.decision_trace import write_trace
from bpac.cli.options.cascade_options import cascade_factory
from bpac.cli.options.policy_options import chosen_drafting
from bpac.cli.output import counted
from bpac.dashboard.estimates.clean_rounds import clean_rounds_needed
from bpac.errors import InputError
from bpac.replay.cascade.comparison import cheapest_oracle, pair_cost
from bpac.replay.cascade.reading import open_cascade
from bpac.replay.cascade.replay import CascadeReplay
from bpac.replay.metrics import mean_and_std
from bpac.replay.outlook import headline, too_short
from bpac.replay.simulation.delays import Delay
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision


def replay_cascade(options: argparse.Namespace, runs: int, name: str) -> int:
    """Replay a cascade and print the report.

    Parameters
    ----------
    options: the options of the command.
    runs: number of replays.
    name: what the table is called in the report.
    """
    if options.compare:
        raise InputError("--compare is for tables of two models: the report of a cascade has its pairs beside it")
    table = open_cascade(options.table)
    factory = cascade_factory(options, table)
    policy, prices = factory.policy, factory.policy.prices
    delay, drafting = Delay.parse(options.delay), chosen_drafting(options)
    replay = CascadeReplay(
        table,
        policy,
        options.epsilon,
        options.alpha,
        runs,
        options.seed,
        options.order,
        factory.exploration,
        delay,
        drafting,
    )
    if options.trace:
        decisions: list[Decision] = []
        threshold = replay.run(0, trace=decisions).threshold
        write_trace(options.trace, decisions, threshold)
    done = replay.run_all()

    def cost_of_pair(stage: int, run: int) -> float:
        return pair_cost(
            table,
            stage,
            prices,
            options.epsilon,
            alpha=options.alpha,
            run=(options.seed, run),
            order=options.order,
            delay=delay,
            drafting=drafting,
        )

    pairs = [[cost_of_pair(stage, run) for run in range(runs)] for stage in range(1, table.stages)]
    ratios = [run.token_ratio for run in done if run.token_ratio is not None]
    oracle = cheapest_oracle(table, prices, options.epsilon)
    report = {
        "table": name,
        "policy": "cascade",
        "memory": policy.memory,
        "dither": 0.0,
        "spread": policy.spread,
        "learn": None,
        "epsilon": options.epsilon,
        "alpha": options.alpha,
        "runs": runs,
        "steps": len(table),
        "order": options.order,
        "delay": options.delay,
        "in_flight": options.in_flight,
        "draft_time": options.draft_time,
        "tickets": not options.no_tickets,
        "seed": options.seed,
        "prices": list(prices),
        "cost": mean_and_std([run.cost for run in done]),
        "cost_by_tokens": mean_and_std([run.cost_by_tokens for run in done if run.cost_by_tokens is not None]),
        "pair_costs": [mean_and_std(costs) for costs in pairs],
        "better_pair_cost": min(statistics.mean(costs) for costs in pairs),
        "oracle_cost": oracle.cost,
        "answered": [statistics.mean(run.answered[stage] for run in done) for stage in range(table.stages)],
        "expert_call_rate": mean_and_std([run.expert_call_rate for run in done]),
        "empirical_risk": mean_and_std([run.empirical_risk for run in done]),
        "token_ratio": mean_and_std(ratios),
        "threshold": mean_and_std([run.threshold for run in done]),
        "oracle_expert_call_rate": oracle.expert_call_rate,
        "rules": sorted({run.rule for run in done}),
        "microseconds_per_step": 1e6 * statistics.median(run.seconds for run in done) / len(table),
    }
    needed = clean_rounds_needed(factory(SeededCoins(0)))
    report |= {
        "headline": headline(report),
        "least_rounds": needed,
        "too_short": too_short("cascade", needed, len(table), options.epsilon, options.alpha),
    }
    first = [report["headline"], *([report["too_short"]] if report["too_short"] else [])]
    print(json.dumps(report) if options.json else "\n".join([*first, _text(report)]))
    return 0


def _text(report: Mapping[str, Any]) -> str:
    cost, better = report["cost"]["mean"], report["better_pair_cost"]
    answered = ", ".join(f"{share:.1%} by model {stage}" for stage, share in enumerate(report["answered"], start=1))
    pairs = ", ".join(f"{pair['mean']:.4g} with model {stage}" for stage, pair in enumerate(report["pair_costs"], 1))
    ratio = report["token_ratio"]
    tokens = f"{ratio['mean']:.2%}   relative to always asking the last model" if ratio else "unknown"
    return "\n".join(
        (
            f"cascade on {report['table']}: {counted(report['runs'], 'run')} "
            f"of {counted(report['steps'], 'query', 'queries')}, "
            f"ε = {report['epsilon']}, α = {report['alpha']}, prices {', '.join(f'{p:g}' for p in report['prices'])}",
            f"  cost          {cost:.4g} ± {report['cost']['std']:.2g} per query   ({cost / better - 1:+.1%} against "
            f"the better pair, oracle: {report['oracle_cost']:.4g})",
            f"  pairs         {pairs}",
            f"  answered      {answered}",
            f"  expert calls  {report['expert_call_rate']['mean']:.2%}   (oracle: "
            f"{report['oracle_expert_call_rate']:.2%})",
            f"  actual loss   {report['empirical_risk']['mean']:.2%}   (promised: risk of each threshold at most "
            f"{report['epsilon']:.2%})",
            f"  tokens        {tokens}",
            f"  threshold     {report['threshold']['mean']:.4g} at the end, of {', '.join(report['rules'])}",
            f"  time          {report['microseconds_per_step']:.2f} µs per query",
        )
    )
