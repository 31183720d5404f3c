"""The command ``collect``: ask both models every question and record the answers."""

import argparse
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bpac.benchmarks.benchmark import Question
from bpac.benchmarks.own import OWN
from bpac.benchmarks.prompting import METHODS, named_method
from bpac.cli.options.model_options import add_model_options, add_request_options, model_server, request_body
from bpac.cli.output import add_json_option, counted, print_report, warn
from bpac.collecting.answers_file import ROLES, Role
from bpac.collecting.collect import CollectionRun
from bpac.collecting.question_files import QuestionFile, read_question_file
from bpac.collecting.requests import ModelServer, RequestTemplate
from bpac.errors import InputError
from bpac.local.benchmark import ALL_BENCHMARKS

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

SHOWN_REASONS = 5
# The name of a model that is not asked, because all of its answers are in the file of questions.
RECORDED = "recorded"


def add_command(commands: "Commands") -> None:
    """Add the command to the command line."""
    collect = commands.add_parser("collect", help="ask two models every question and record the answers")
    asked = collect.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--questions",
        type=Path,
        metavar="FILE",
        help="own questions, .jsonl or .json (each also .gz): each has prompt or messages, and may have id, reference "
        "(the correct answer), category, and answers that bpac import has recorded, which are not asked for again",
    )
    asked.add_argument("--benchmark", choices=tuple(ALL_BENCHMARKS), help="published benchmark to ask")
    file = "file with the questions of the benchmark, .jsonl or .json (default: the published data set)"
    collect.add_argument("--file", type=Path, metavar="FILE", help=file)
    needed = "needed unless all of its answers are recorded in --questions"
    add_model_options(
        collect,
        "draft",
        required=False,
        body_note="; log-probabilities are requested unless it sets them to null",
        needed=needed,
    )
    add_model_options(collect, "expert", required=False, needed=needed)
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
    if options.questions is not None and options.file is not None:
        raise InputError("--file is for --benchmark: give own questions with --questions alone")
    servers: dict[Role, ModelServer] = {
        role: model_server(options, role) for role in ROLES if _is_given(options, role, options.questions is None)
    }
    benchmark = OWN if options.questions is not None else ALL_BENCHMARKS[options.benchmark]
    own = read_question_file(options.questions) if options.questions is not None else None
    questions = _limited(own.questions if own else benchmark.load(options.file), options.limit)
    templates: dict[Role, RequestTemplate] = {
        role: RequestTemplate(
            getattr(options, f"{role}_model") or RECORDED,
            request_body(options, role) if role in servers else {},
            named_method(options.method if role == "draft" else "direct"),
            getattr(options, f"{role}_api"),
        )
        for role in ROLES
    }
    run = CollectionRun(
        benchmark,
        questions,
        templates,
        options.out,
        options.concurrency,
        options.retry_failed,
        recorded=own.recorded if own else {},
    )
    collected = run.run(servers)
    if own:
        warn(_recorded(own, options))
    sent = f"{counted(collected.asked, 'request')} sent in this run"
    lines = [f"{counted(collected.questions, 'question')}, {sent}: {options.out}"]
    lines += [
        f"  {role:6}  {collected.answered[role]:,} answered, {collected.failed[role]:,} failed"
        for role in collected.answered
    ]
    warn(f"{count} failed: {reason}" for reason, count in list(collected.reasons.items())[:SHOWN_REASONS])
    if any(collected.failed.values()):
        warn(["failed requests are never graded as wrong answers; use --retry-failed to retry them"])
    print_report(options, {"answers": str(options.out), **asdict(collected)}, lines)
    return 0 if any(collected.answered.values()) else 1


def _is_given(options: argparse.Namespace, role: Role, required: bool) -> bool:
    given = [getattr(options, f"{role}_{name}") is not None for name in ("url", "model")]
    if all(given) or (not any(given) and not required):
        return all(given)
    raise InputError(f"--{role}-url and --{role}-model are both needed to ask the {role}")


def _recorded(own: QuestionFile, options: argparse.Namespace) -> list[str]:
    """Which recorded answers were used, where another model was asked for the rest."""
    lines = []
    for role in ROLES:
        asked = getattr(options, f"{role}_model")
        for model, count in own.models[role].items():
            if asked is not None and model != asked:
                lines.append(f"{count} recorded answers of the {role} {model!r} are used beside those of {asked!r}")
    return lines


def _limited(questions: Sequence[Question], limit: int | None) -> list[Question]:
    chosen = list(questions)
    if limit is None:
        return chosen
    if limit < 1:
        raise InputError(f"--limit must be at least 1, got {limit}")
    # Data sets are sorted by subject, so the first few are not a sample. A larger limit starts with the same questions.
    random.Random(0).shuffle(chosen)
    return chosen[:limit]
