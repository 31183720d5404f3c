"""The command ``collect``: ask both models every question and record the answers."""

import argparse
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bpac.benchmarks.benchmark import Question
from bpac.benchmarks.prompting import METHODS, named_method
from bpac.cli.model_options import add_model_options, add_request_options, model_server, request_body
from bpac.cli.output import add_json_option, print_report, warn
from bpac.collecting.answers_file import Role
from bpac.collecting.collect import CollectionRun
from bpac.collecting.requests import RequestTemplate
from bpac.errors import InputError
from bpac.local.benchmark import ALL_BENCHMARKS

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

SHOWN_REASONS = 5


def add_command(commands: "Commands") -> None:
    """Add the command to the command line."""
    collect = commands.add_parser("collect", help="ask two models every question of a benchmark and record the answers")
    collect.add_argument("--benchmark", required=True, choices=tuple(ALL_BENCHMARKS), help="benchmark to ask")
    file = "file with the questions, .jsonl or .json (default: the published data set)"
    collect.add_argument("--file", type=Path, metavar="FILE", help=file)
    add_model_options(
        collect, "draft", required=True, body_note="; log-probabilities are requested unless it sets them to null"
    )
    add_model_options(collect, "expert", required=True)
    method = "prompting method for the draft; the expert is always asked directly (default: direct)"
    collect.add_argument("--method", choices=tuple(METHODS), default="direct", help=method)
    limit = "ask only N questions, drawn at random but the same in every run (default: all questions)"
    collect.add_argument("--limit", type=int, metavar="N", help=limit)
    add_request_options(collect)
    collect.add_argument("--retry-failed", action="store_true", help="retry requests that failed in an earlier run")
    out = "file for the answers; a file from an earlier run is continued"
    collect.add_argument("--out", type=Path, required=True, metavar="ANSWERS", help=out)
    add_json_option(collect)
    collect.set_defaults(run=_collect)


def _collect(options: argparse.Namespace) -> int:
    draft, expert = model_server(options, "draft"), model_server(options, "expert")
    benchmark = ALL_BENCHMARKS[options.benchmark]
    templates: dict[Role, RequestTemplate] = {
        "draft": RequestTemplate(
            options.draft_model, request_body(options, "draft"), named_method(options.method), options.draft_api
        ),
        "expert": RequestTemplate(options.expert_model, request_body(options, "expert"), api=options.expert_api),
    }
    questions = _limited(benchmark.load(options.file), options.limit)
    run = CollectionRun(benchmark, questions, templates, options.out, options.concurrency, options.retry_failed)
    collected = run.run({"draft": draft, "expert": expert})
    lines = [f"{collected.questions} questions, {collected.asked} requests sent in this run: {options.out}"]
    lines += [
        f"  {role:6}  {collected.answered[role]} answered, {collected.failed[role]} failed"
        for role in collected.answered
    ]
    warn(f"{count} failed: {reason}" for reason, count in list(collected.reasons.items())[:SHOWN_REASONS])
    if any(collected.failed.values()):
        warn(["failed requests are never graded as wrong answers; use --retry-failed to retry them"])
    print_report(options, {"answers": str(options.out), **asdict(collected)}, lines)
    return 0 if any(collected.answered.values()) else 1


def _limited(questions: Sequence[Question], limit: int | None) -> list[Question]:
    chosen = list(questions)
    if limit is None:
        return chosen
    if limit < 1:
        raise InputError(f"--limit must be at least 1, got {limit}")
    # Data sets are sorted by subject, so the first few are not a sample. A larger limit starts with the same questions.
    random.Random(0).shuffle(chosen)
    return chosen[:limit]
