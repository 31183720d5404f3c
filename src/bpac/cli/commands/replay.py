"""The command ``replay``: what a policy would have done on recorded answers."""

import argparse
import statistics
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bpac.arguments import whole
from bpac.cli.commands.replay_cascade import replay_cascade
from bpac.cli.decision_trace import write_trace
from bpac.cli.options.cascade_options import PRICES
from bpac.cli.options.hours_options import add_hours_options, chosen_hours, expert_costs
from bpac.cli.options.learning_option import add_learn_option, chosen_learning
from bpac.cli.options.policy_options import add_policy_options, chosen_drafting, chosen_policy, router_factory
from bpac.cli.output import print_report
from bpac.cli.replay_lines import report_lines
from bpac.cli.standard_input import STANDARD_INPUT, spooled_table
from bpac.errors import InputError, TableError
from bpac.output_files import refuse_overwriting
from bpac.replay.cascade.builtin import CASCADES
from bpac.replay.cascade.reading import is_cascade, prices_from_text
from bpac.replay.figures import check_figure_format, draw_replays, save
from bpac.replay.metrics import ReplayMetrics, mean_and_std
from bpac.replay.oracle import oracle_expert_call_rate, oracle_policy
from bpac.replay.outlook import COMPARED, compared, headline, least_rounds, too_short
from bpac.replay.page import write_page
from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory, suited_to
from bpac.replay.simulation.delays import Delay
from bpac.replay.tables.builtin import NAMES, PREFIX
from bpac.replay.tables.table import Table
from bpac.replay.tables.weights import ReplayTable, open_replay_table
from bpac.routing.policies import Policy

RUNS = 10
# Rounds up to which other policies are replayed, too, without being asked for: about a second each.
MOST_COMPARED = 200_000


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the command line."""
    replay = commands.add_parser(
        "replay", help="show what a routing policy would have done on a table of recorded answers"
    )
    replay.add_argument(
        "table",
        metavar="TABLE",
        help="file with one row per question (.csv, .jsonl, each also .gz, or .parquet), - for standard input, or a "
        f"built-in table: {PREFIX}NAME with NAME one of {', '.join((*NAMES, *CASCADES))}",
    )
    add_policy_options(replay, epsilon=0.05)
    replay.add_argument(
        "--score",
        default="uncertainty",
        metavar="COLUMN",
        help="column of the table with the uncertainty of the drafts (default: uncertainty)",
    )
    add_learn_option(
        replay, "if the default policy is used, the table has such columns and it does not prescribe coins"
    )
    replay.add_argument("--runs", type=int, help=f"number of replays (default: {RUNS}, or 1 with --order given)")
    replay.add_argument(
        "--order",
        choices=("shuffled", "given"),
        default="shuffled",
        help="order of the rows: shuffled in each run, or as given in the table (default: shuffled)",
    )
    replay.add_argument(
        "--expert-correct-only",
        action="store_true",
        help="use only the rows in which the expert's answer is correct (column expert_correct)",
    )
    replay.add_argument(
        "--expert-preferred-only",
        action="store_true",
        help="use only the rows in which a judge preferred the expert's answer (column expert_preferred)",
    )
    replay.add_argument(
        "--trace", type=Path, metavar="FILE", help="write every decision of the first run to this CSV file"
    )
    replay.add_argument(
        "--figure", type=Path, metavar="FILE", help="draw the first run over time to this file (.png or .svg)"
    )
    replay.add_argument(
        "--html", type=Path, metavar="FILE", help="write the first run to this file as a page like the dashboard"
    )
    replay.add_argument(
        "--compare",
        action=argparse.BooleanOptionalAction,
        help=f"compare with other policies: {', '.join(COMPARED)} (default: in text, if runs × rows are at most "
        f"{MOST_COMPARED:,})",
    )
    replay.add_argument(
        "--prices",
        metavar="P1,…,PM",
        help=f"{PRICES}: adds the cost per request to the report "
        "(default: none; for a table of a cascade, the mean tokens of each model relative to the last)",
    )
    add_hours_options(replay)
    replay.set_defaults(run=_replay)


def _replay(options: argparse.Namespace) -> int:
    if options.table != STANDARD_INPUT:
        return _replay_file(options)
    with spooled_table() as path:
        try:
            return _replay_file(argparse.Namespace(**{**vars(options), "table": str(path)}), "standard input")
        except TableError as error:
            raise TableError(str(error).replace(str(path), "standard input")) from error


def _replay_file(options: argparse.Namespace, shown: str = "") -> int:
    outputs = {f"--{name}": getattr(options, name) for name in ("trace", "figure", "html")}
    refuse_overwriting(outputs, [] if options.table.startswith(PREFIX) else [options.table])
    if options.figure:
        check_figure_format(options.figure)
    if is_cascade(options.table):
        return replay_cascade(options, _runs(options), shown or str(options.table))
    prices = prices_from_text(options.prices) if options.prices else None
    if prices is not None and len(prices) != 2:
        raise InputError(f"--prices has {len(prices)} prices, and {options.table} has two models")
    opened = open_replay_table(options.table, options.score)
    table = opened.table
    if opened.recorded is not None and options.order == "given":
        raise InputError(
            f"--order given: the rows of {shown or options.table} are audited requests that stand for several each "
            "(column propensity), so that the order of the traffic is not known: leave it out"
        )
    if options.expert_correct_only:
        table = table.only("expert_correct")
    if options.expert_preferred_only:
        table = table.only("expert_preferred")
    policy = oracle_policy(table, options.epsilon) if options.policy == "oracle" else chosen_policy(options)
    if options.dither == "auto":
        policy = suited_to(policy, opened.recorded or table)
    policy = chosen_learning(policy, table, options.learn)
    make_router = router_factory(options, policy)
    replay = Replay(
        table=table,
        make_router=make_router,
        runs=_runs(options),
        seed=options.seed,
        order=options.order,
        delay=Delay.parse(options.delay),
        drafting=chosen_drafting(options),
        hours=chosen_hours(options),
    )
    name = shown or Path(options.table).name
    if options.html:
        write_page(replay, make_router, options.html, name=name, score=options.score)
    if options.trace or options.figure:
        ordered, path = replay.run(0, trace=True)
        if options.trace:
            write_trace(options.trace, path.decisions, path.threshold)
        if options.figure:
            save(draw_replays({options.policy: (ordered, path)}, options.epsilon, name), options.figure)
    metrics = replay.run_all()
    report = {**_report(options, policy, table, metrics), **expert_costs(replay, metrics)}
    report |= {"table": shown or str(options.table), "recorded_rows": len(opened.recorded) if opened.recorded else None}
    if prices is not None:
        report["cost"] = mean_and_std([prices[0] + prices[1] * run.expert_call_rate for run in metrics])
    report |= _outlook(options, replay, make_router, opened, report)
    print_report(options, report, report_lines(report))
    return 0


def _outlook(
    options: argparse.Namespace, replay: Replay, make_router: RouterFactory, opened: ReplayTable, report: dict[str, Any]
) -> dict[str, Any]:
    """What the numbers mean: one sentence, whether the table is too short, and what other policies would have done."""
    rows, needed = len(replay.table), least_rounds(make_router)
    wanted = not options.json and rows * replay.runs <= MOST_COMPARED if options.compare is None else options.compare
    others = [name for name in COMPARED if name != options.policy]
    return {
        "headline": headline(report),
        "least_rounds": needed,
        "too_short": too_short(options.policy, needed, rows, options.epsilon, options.alpha),
        "comparison": [asdict(one) for one in compared(replay, make_router, others, opened.recorded)]
        if wanted
        else None,
        "html": str(options.html) if options.html else None,
    }


def _runs(options: argparse.Namespace) -> int:
    if options.runs is None:
        return 1 if options.order == "given" else RUNS
    return whole(options.runs, "runs", 1)


def _report(options: argparse.Namespace, policy: Policy, table: Table, runs: list[ReplayMetrics]) -> dict[str, Any]:
    return {
        "table": str(options.table),
        "policy": options.policy,
        "memory": getattr(policy, "memory", None),
        "dither": getattr(policy, "dither", 0.0),
        "learn": list(policy.learned.features) if policy.learned is not None else None,
        "epsilon": options.epsilon,
        "alpha": options.alpha,
        "runs": len(runs),
        "steps": len(table),
        "order": options.order,
        "delay": options.delay,
        "in_flight": options.in_flight,
        "draft_time": options.draft_time,
        "tickets": not options.no_tickets,
        "seed": options.seed,
        "expert_call_rate": mean_and_std([run.expert_call_rate for run in runs]),
        "empirical_risk": mean_and_std([run.empirical_risk for run in runs]),
        "token_ratio": mean_and_std([run.token_ratio for run in runs if run.token_ratio is not None]),
        "threshold": mean_and_std([run.threshold for run in runs]),
        "oracle_expert_call_rate": oracle_expert_call_rate(table, options.epsilon),
        "microseconds_per_step": 1e6 * statistics.median(run.seconds for run in runs) / len(table),
    }
