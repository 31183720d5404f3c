"""The command ``graders``: measure how often graders are wrong, or how often a judge prefers the better answer."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpac.benchmarks.benchmark import Question
from bpac.cli.options.model_options import add_model_options, add_request_options, model_server, request_body
from bpac.cli.output import add_json_option, print_report, warn
from bpac.errors import InputError, MissingExtra
from bpac.grader_accuracy.benchmark_pairs import load_questions
from bpac.grader_accuracy.judge_agreement import JudgeAgreement
from bpac.grader_accuracy.measure_judge import measure_judge
from bpac.grader_accuracy.preference_pairs import preference_pairs
from bpac.grader_accuracy.rates import MeasuredGrader, measured_graders
from bpac.grading.mathematics.equivalence import check_algebra
from bpac.models.judging import Judge

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

PAIRS = 20_000
# The graders that compare formulas, which needs an extra.
ALGEBRA = ("mathematics", "benchmark math", "benchmark gsm8k", "benchmark bbh")


def add_command(commands: "Commands") -> None:
    """Add the command to the command line."""
    graders = commands.add_parser(
        "graders", help="measure how often each grader, or a judge, is wrong on labelled pairs of answers"
    )
    pairs = (
        f"number of pairs for every grader, label (equal or different) and source (default: {PAIRS}); "
        f"a judge gets at most the {len(preference_pairs())} built-in ones"
    )
    graders.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=pairs)
    grader = "measure only this grader; can be given several times (default: all graders)"
    graders.add_argument("--grader", action="append", metavar="NAME", help=grader)
    bench = "folder with benchmark files: adds pairs of their answers and the benchmarks' own graders (default: none)"
    graders.add_argument("--bench", type=Path, metavar="DIR", help=bench)
    graders.add_argument("--seed", type=int, default=0, help="random seed of the pairs (default: 0)")
    add_model_options(graders, "judge", required=False, needed="measures this judge instead of the graders")
    votes = "number of marks from the judge that are averaged for each answer (default: 1)"
    graders.add_argument("--votes", type=int, default=1, metavar="N", help=votes)
    add_request_options(graders)
    add_json_option(graders)
    graders.set_defaults(run=_graders)


def _graders(options: argparse.Namespace) -> int:
    if options.pairs < 1:
        raise InputError(f"--pairs must be at least 1, got {options.pairs}")
    if options.judge_url or options.judge_model:
        return _judge(options)
    questions: Mapping[str, Sequence[Question]] = load_questions(options.bench) if options.bench else {}
    graders = measured_graders(questions, options.seed)
    known = [grader.name for grader in graders]
    for name in options.grader or ():
        if name not in known:
            raise InputError(f"--grader {name!r} is not known; the graders are {', '.join(known)}")
    chosen = [grader for grader in graders if not options.grader or grader.name in options.grader]
    found = {}
    for grader in _usable(chosen):
        warn([f"measuring {grader.name}"])
        found[grader.name] = _measured(grader, options.pairs)
    print_report(options, {"pairs": options.pairs, "seed": options.seed, "graders": found}, _table(found))
    return 1 if any(one["different"]["false"] for one in found.values()) else 0


def _usable(graders: Sequence[MeasuredGrader]) -> list[MeasuredGrader]:
    """The graders whose extras are installed; a warning names the others."""
    try:
        check_algebra()
    except MissingExtra as error:
        warn(f"{one.name} is not measured: {error}" for one in graders if one.name in ALGEBRA)
        return [grader for grader in graders if grader.name not in ALGEBRA]
    return list(graders)


def _measured(grader: MeasuredGrader, pairs: int) -> dict[str, Any]:
    return {
        "different": grader.count(pairs, same=False).to_json(),
        "same": grader.count(pairs, same=True).to_json(),
    }


def _table(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    wrong = [name for name, one in found.items() if one["different"]["false"]]
    lines = [
        f"called different answers equal: {', '.join(wrong)}" if wrong else "no grader called different answers equal",
        "",
        "| grader | different pairs | called equal | at most | unknown "
        "| equal pairs | called different | at most | unknown |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, one in found.items():
        cells = [
            f"{counts['pairs']:,} | {counts['false']} | {counts['upper_95']:.3%} | {counts['unknown_rate']:.1%}"
            for counts in (one["different"], one["same"])
        ]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    for name, one in found.items():
        for label in ("different", "same"):
            lines += [f"{name}: {kind}: {draft!r} and {expert!r}" for kind, draft, expert in one[label]["examples"]]
    return lines


def _judge(options: argparse.Namespace) -> int:
    if not (options.judge_url and options.judge_model):
        raise InputError("a judge needs both --judge-url and --judge-model")
    if options.grader or options.bench:
        raise InputError("--grader and --bench are for graders: leave them out to measure a judge")
    found = asyncio.run(_agreement(options))
    print_report(options, found.to_json(), _judge_lines(found))
    return 0 if found.better_than_chance else 1


async def _agreement(options: argparse.Namespace) -> JudgeAgreement:
    body = request_body(options, "judge")
    async with model_server(options, "judge").client(body) as client:
        judge = Judge(client, votes=options.votes, timeout=options.timeout)
        pairs = preference_pairs()[: options.pairs]
        return await measure_judge(judge, options.judge_model, pairs, body, options.concurrency)


def _judge_lines(found: JudgeAgreement) -> list[str]:
    lines = found.summary()
    lines += [
        "",
        "| fault of the worse answer | pairs | judged | prefers the better answer |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {fault} | {counts['pairs']} | {counts['answered']} | {counts['agreed']} |"
        for fault, counts in found.by_fault().items()
    ]
    return lines
