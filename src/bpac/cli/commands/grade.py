"""The command ``grade``: grade recorded answers."""

import argparse
import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from bpac.benchmarks.own import OWN
from bpac.cli.options.model_options import add_model_options, add_request_options, model_server, request_body
from bpac.cli.output import add_json_option, counted, print_report, warn
from bpac.collecting.answers_file import KIND as ANSWERS
from bpac.collecting.append_only_file import read_settings
from bpac.collecting.grade import Grade, GradingRun
from bpac.errors import InputError
from bpac.local.benchmark import ALL_BENCHMARKS
from bpac.models.judging import Judge

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands") -> None:
    """Add the command to the command line."""
    grade = commands.add_parser("grade", help="grade the answers that bpac collect recorded")
    grade.add_argument("answers", type=Path, metavar="ANSWERS", help="answers file written by bpac collect")
    add_model_options(grade, "judge", required=False)
    votes = "number of marks from the judge that are averaged for each answer (default: 1)"
    grade.add_argument("--votes", type=int, default=1, metavar="N", help=votes)
    add_request_options(grade)
    retry_failed = "grade again the questions that could not be graded in an earlier run"
    grade.add_argument("--retry-failed", action="store_true", help=retry_failed)
    out = "file for the grades; a file from an earlier run is continued"
    grade.add_argument("--out", type=Path, required=True, metavar="GRADES", help=out)
    add_json_option(grade)
    grade.set_defaults(run=_grade)


def _grade(options: argparse.Namespace) -> int:
    grades = asyncio.run(_graded(options))
    reasons = Counter(grade.unknown for grade in grades if grade.unknown)
    known = len(grades) - reasons.total()
    warn(f"{count} not graded: {why}" for why, count in reasons.items())
    report = {"grades": str(options.out), "questions": len(grades), "known": known, "reasons": dict(reasons)}
    print_report(options, report, [f"{known:,} of {counted(len(grades), 'question')} graded: {options.out}"])
    return 0


async def _graded(options: argparse.Namespace) -> list[Grade]:
    name = read_settings(options.answers, ANSWERS)["benchmark"]
    known = {**ALL_BENCHMARKS, OWN.name: OWN}
    if name not in known:
        raise InputError(
            f"{options.answers} contains answers to the unknown benchmark {name!r}; "
            f"the known ones are {', '.join(ALL_BENCHMARKS)}"
        )
    files = (known[name], options.answers, options.out)
    if not options.judge_url and not options.judge_model:
        return await GradingRun(*files, retry_failed=options.retry_failed).run()
    if not (options.judge_url and options.judge_model):
        raise InputError("a judge needs both --judge-url and --judge-model")
    body = request_body(options, "judge")
    async with model_server(options, "judge").client(body) as client:
        judge = Judge(client, votes=options.votes, timeout=options.timeout)
        judged_by = {"model": options.judge_model, "body": body, "votes": options.votes}
        return await GradingRun(*files, judge, judged_by, options.concurrency, options.retry_failed).run()
