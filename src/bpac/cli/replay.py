"""The commands ``replay``, ``validate`` and ``reproduce``."""

import argparse
import csv
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bpac.errors import InputError
from bpac.output_files import refuse_overwriting, whole_file
from bpac.replay.figures import check_ending, draw_replays, save
from bpac.replay.page import write_page
from bpac.replay.parallel import Engine
from bpac.replay.replay import Path as ReplayPath
from bpac.replay.replay import Replay, oracle_expert_call_rate, oracle_policy
from bpac.replay.reproduce import NAMES, reproduce
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import DRAFT_TIMES, Drafting
from bpac.replay.simulation.faults import FAULTS, Faults
from bpac.replay.simulation.laws import LAWS, largest_safe, named_law
from bpac.replay.specs import BETS, SCHEDULES, parse_bet, parse_exploration
from bpac.replay.start import Start
from bpac.replay.tables.builtin import BENCHMARKS, MIXED, PREFIX, open_table
from bpac.replay.validation import Promise, Validation, upper_95
from bpac.routing.policies import MEMORIES, ORACLE, POLICIES, Paper, Policy, named_policy

REPLAY_RUNS = 10
TABLES = f".csv, .jsonl (each also .gz), .parquet, or {PREFIX}NAME with NAME one of {', '.join((*BENCHMARKS, *MIXED))}"
PROMISES = {
    "threshold": "an unsafe threshold was ever in force",
    "served": "the average loss served ever exceeded ε",
    "certificate": "the loss served ever left its certificate",
}
# Baselines: what they are held against is what others promise.
WITHOUT_PROMISE = ("naive", "never", "always", "oracle")


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add replay, validate and reproduce to the command line."""
    replay = commands.add_parser("replay", help="send a table of recorded answers through a policy")
    replay.add_argument("table", metavar="TABLE", help=TABLES)
    _policy_options(replay, epsilon=0.05)
    replay.add_argument("--score", default="uncertainty", metavar="COLUMN", help="the column with the uncertainty")
    replay.add_argument("--runs", type=int, help=f"how many replays ({REPLAY_RUNS}; 1 with --order given)")
    replay.add_argument("--order", choices=("shuffled", "given"), default="shuffled", help="order of the rows")
    replay.add_argument("--expert-correct-only", action="store_true", help="drop rows the expert gets wrong")
    replay.add_argument(
        "--expert-preferred-only", action="store_true", help="drop rows whose expert's answer no judge preferred"
    )
    replay.add_argument("--trace", type=Path, metavar="FILE", help="write the first run step by step, as CSV")
    replay.add_argument("--figure", type=Path, metavar="FILE", help="draw the first run (.png or .svg)")
    replay.add_argument("--html", type=Path, metavar="FILE", help="write the first run as a page, like the dashboard's")
    replay.set_defaults(run=_replay)

    validate = commands.add_parser("validate", help="check the promise by simulation")
    unbound = f"{', '.join(WITHOUT_PROMISE)} promise nothing, and alpha is then only what their rate is held against"
    _policy_options(validate, epsilon=0.1)
    validate.add_argument("--streams", type=int, default=2000, help="how many streams (2000)")
    validate.add_argument("--steps", type=int, default=1000, help="rounds in each (1000)")
    validate.add_argument("--law", choices=tuple(LAWS), default="rising", help="where queries come from")
    validate.add_argument("--faults", default="", metavar="LIST", help=f"what goes wrong, by commas: {FAULTS}")
    validate.add_argument("--crash-every", type=int, default=0, metavar="N", help="the same as --faults crash:N")
    validate.add_argument("--promise", choices=tuple(PROMISES), help=f"what counts as a violation; {unbound}")
    validate.set_defaults(run=_validate)

    results = commands.add_parser("reproduce", help="write tables and figures")
    names = f"all, {', '.join(NAMES)}; all unless --tables are given"
    results.add_argument("names", nargs="*", metavar="NAME", help=names)
    results.add_argument("--runs", type=int, default=100, help="replays of each method (100)")
    results.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write them")
    results.add_argument("--tables", nargs="+", default=[], metavar="TABLE", help="what you would save on your tables")
    results.add_argument(
        "--graded", action="append", default=[], metavar="METHOD=TABLE", help="graded answers of a prompting method"
    )
    results.add_argument("--workers", type=int, default=-1, help="processes; one a core unless told otherwise")
    results.add_argument("--dask", metavar="ADDRESS", help="run on the workers of this Dask scheduler")
    results.add_argument("--json", action="store_true", help="one JSON object on standard output")
    results.set_defaults(run=_reproduce)


def _policy_options(parser: argparse.ArgumentParser, epsilon: float) -> None:
    parser.add_argument(
        "--policy", choices=tuple(POLICIES), default="portfolio", help="portfolio unless told otherwise"
    )
    parser.add_argument("--memory", choices=MEMORIES, help="of the portfolio: alarmed unless told otherwise")
    parser.add_argument("--assume", choices=("iid", "any"), help="of the portfolio: what is assumed of the stream")
    parser.add_argument("--exploration", metavar="SPEC", help=f"another schedule: {SCHEDULES}")
    parser.add_argument("--bet", metavar="SPEC", help=f"of the paper's policies: {BETS}")
    parser.add_argument("--epsilon", type=float, default=epsilon, help=f"promised bound on the loss ({epsilon})")
    parser.add_argument("--alpha", type=float, default=0.1, help="chance that the promise fails (0.1)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    specs = "none, independent:MEAN, losses:MEAN (in requests) or lost:SHARE"
    parser.add_argument("--delay", default="none", metavar="SPEC", help=f"when outcomes arrive: {specs}")
    parser.add_argument("--in-flight", type=int, default=1, metavar="N", help="drafts under way at once (default: 1)")
    parser.add_argument(
        "--draft-time",
        default="none",
        metavar="SPEC",
        help=f"how long a draft takes, relative to others: {DRAFT_TIMES} (drafts that lose take FACTOR times "
        "as long); default: none, all take equally long",
    )
    parser.add_argument(
        "--no-tickets",
        action="store_true",
        help="count queries in the order in which their drafts end, not in which they arrive; this breaks the promise "
        "where drafts that lose take longer",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def _replay(options: argparse.Namespace) -> int:
    outputs = {f"--{name}": getattr(options, name) for name in ("trace", "figure", "html")}
    refuse_overwriting(outputs, [] if options.table.startswith(PREFIX) else [options.table])
    if options.figure:
        check_ending(options.figure)
    table = open_table(options.table, options.score)
    if options.expert_correct_only:
        table = table.only("expert_correct")
    if options.expert_preferred_only:
        table = table.only("expert_preferred")
    policy = oracle_policy(table, options.epsilon) if options.policy == "oracle" else _named_policy(options)
    start = _start(options, policy)
    replay = Replay(
        table=table,
        router=start,
        runs=options.runs if options.runs is not None else (1 if options.order == "given" else REPLAY_RUNS),
        seed=options.seed,
        order=options.order,
        delay=Delay.parse(options.delay),
        drafting=_drafting(options),
    )
    if options.html:
        write_page(replay, start, options.html, name=Path(options.table).name, score=options.score)
    if options.trace or options.figure:
        ordered, path = replay.one(0, trace=True)
        if options.trace:
            _write_trace(options.trace, path)
        if options.figure:
            save(
                draw_replays({options.policy: (ordered, path)}, options.epsilon, Path(options.table).name),
                options.figure,
            )
    runs = replay.all()
    report = {
        "table": str(options.table),
        "policy": options.policy,
        "memory": getattr(policy, "memory", None),
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
        "expert_call_rate": _spread([run.expert_call_rate for run in runs]),
        "empirical_risk": _spread([run.empirical_risk for run in runs]),
        "token_ratio": _spread([run.token_ratio for run in runs if run.token_ratio is not None]),
        "threshold": _spread([run.threshold for run in runs]),
        "oracle_expert_call_rate": oracle_expert_call_rate(table, options.epsilon),
        "microseconds_per_step": 1e6 * statistics.median(run.seconds for run in runs) / len(table),
    }
    if options.json:
        print(json.dumps(report))
    else:
        print(_replay_text(report))
    return 0


def _replay_text(report: Mapping[str, Any]) -> str:
    def percent(key: str) -> str:
        spread = report[key]
        return "unknown" if spread is None else f"{spread['mean']:7.2%} ± {spread['std']:.2%}"

    name = report["policy"] + (f" ({report['memory']})" if report["memory"] else "")
    return "\n".join(
        (
            f"{name} on {report['table']}: {report['runs']} runs of {report['steps']} steps, "
            f"ε = {report['epsilon']}, α = {report['alpha']}",
            f"  expert calls  {percent('expert_call_rate')}   (the oracle: {report['oracle_expert_call_rate']:.2%})",
            f"  loss served   {percent('empirical_risk')}   ({_promised(report['policy'], report['epsilon'])})",
            f"  tokens        {percent('token_ratio')}   of always asking the expert",
            f"  threshold     {report['threshold']['mean']:.4g} ± {report['threshold']['std']:.2g} at the end",
            f"  time          {report['microseconds_per_step']:.2f} µs a step",
        )
    )


def _promised(policy: str, most: float) -> str:
    return "this policy promises nothing" if policy in WITHOUT_PROMISE else f"promised: at most {most:.2%}"


def _write_trace(path: Path, replayed: ReplayPath) -> None:
    after = [*(decision.threshold for decision in replayed.decisions[1:]), replayed.threshold]
    with whole_file(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("step", "threshold_before", "propensity", "call_expert", "threshold_after"))
        for decision, threshold in zip(replayed.decisions, after, strict=True):
            row = (decision.step, decision.threshold, decision.propensity, int(decision.call_expert), threshold)
            writer.writerow(row)


def _validate(options: argparse.Namespace) -> int:
    law = named_law(options.law)
    policy = _named_policy(options)
    if options.policy == "oracle":
        policy = replace(ORACLE, threshold=largest_safe(law, options.epsilon / (1.0 - ORACLE.explores)))
    promise: Promise = options.promise or ("served" if options.policy == "budget" else "threshold")
    start = _start(options, policy)
    faults = Faults.parse(options.faults)
    if options.crash_every:
        faults = replace(faults, crash_every=options.crash_every)
    delay, drafting = Delay.parse(options.delay), _drafting(options)
    validation = Validation(start, law, promise, options.steps, delay, drafting, faults)
    verdicts = validation.run(options.streams, options.seed)
    violations = sum(verdict.broken for verdict in verdicts)
    report = {
        "policy": options.policy,
        "memory": getattr(policy, "memory", None),
        "promise": promise,
        "law": options.law,
        "delay": options.delay,
        "in_flight": options.in_flight,
        "draft_time": options.draft_time,
        "tickets": not options.no_tickets,
        "faults": options.faults,
        "crash_every": faults.crash_every,
        "epsilon": options.epsilon,
        "alpha": options.alpha,
        "seed": options.seed,
        "streams": options.streams,
        "steps": options.steps,
        "violations": violations,
        "rate": violations / options.streams,
        "upper_95": upper_95(violations, options.streams),
        "rounds": _spread([verdict.rounds for verdict in verdicts]),
        "expert_call_rate": _spread([verdict.expert_call_rate for verdict in verdicts]),
        "threshold": _spread([verdict.threshold for verdict in verdicts]),
        "largest_safe_threshold": largest_safe(law, options.epsilon / start.kept_share),
    }
    if options.json:
        print(json.dumps(report))
    else:
        print(
            f"{options.policy}: {PROMISES[promise]} in {violations} of {options.streams} streams "
            f"of {options.steps} steps\n"
            f"  rate {report['rate']:.2%}, at most {report['upper_95']:.2%} with 95 % confidence; "
            f"{_promised(options.policy, options.alpha)}"
        )
    return 0


def _reproduce(options: argparse.Namespace) -> int:
    graded, inputs = {}, list(options.tables)
    for item in options.graded:
        method, equals, place = item.partition("=")
        if not (method and equals and place):
            raise InputError(f"--graded {item}: give METHOD=TABLE, such as NoThinking=answers.csv")
        graded[method] = open_table(place)
        inputs.append(place)
    tables = {place: open_table(place) for place in options.tables}
    # Long paths make no labels; the file's name does, where it is unique.
    short = {place: Path(place).name for place in tables}
    named = {short[place] if list(short.values()).count(short[place]) == 1 else place: t for place, t in tables.items()}
    names = options.names or ([] if tables else ["all"])
    engine = Engine(options.workers, options.dask)
    files = [place for place in inputs if not place.startswith(PREFIX)]
    done = reproduce(names, options.runs, options.out, tables=named, graded=graded, inputs=files, engine=engine)
    written = [str(path) for path in done.written]
    if not options.json:
        print("\n".join(written))
        return 0
    results = [
        {"name": one.name, "title": one.title, "header": list(one.header), "rows": [list(row) for row in one.rows]}
        for one in done.sections
    ]
    report = {"out": str(options.out), "report": written[-1], "files": written, "runs": options.runs}
    print(json.dumps(report | {"results": results}))
    return 0


def _start(options: argparse.Namespace, policy: Policy) -> Start:
    exploration = parse_exploration(options.exploration) if options.exploration else None
    return Start(policy, options.epsilon, options.alpha, exploration)


def _drafting(options: argparse.Namespace) -> Drafting:
    return Drafting.parse(options.draft_time, options.in_flight, tickets=not options.no_tickets)


def _named_policy(options: argparse.Namespace) -> Policy:
    policy = named_policy(options.policy, options.memory, options.assume)
    if options.bet is None:
        return policy
    if not isinstance(policy, Paper):
        raise InputError(f"--bet belongs to the paper's policies, not to {options.policy}: leave it out")
    return replace(policy, bet=parse_bet(options.bet))


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    """Mean and standard deviation; none if nothing is known."""
    if not values:
        return None
    return {"mean": statistics.fmean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}
