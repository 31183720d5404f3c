"""The commands that lead from models to a table: collect, grade and table, and the whole chain on the local pair."""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpac.benchmarks.benchmark import Benchmark, Question
from bpac.benchmarks.methods import METHODS, named_method
from bpac.benchmarks.registry import BENCHMARKS
from bpac.benchmarks.sampling import SAMPLINGS
from bpac.collecting.answers_file import KIND as ANSWERS
from bpac.collecting.answers_file import Role
from bpac.collecting.asking import Recipe, Server
from bpac.collecting.collect import Collection
from bpac.collecting.grading import Grade, Grading
from bpac.collecting.kept_lines import read_settings
from bpac.collecting.scoring import DEFAULT, NAMES
from bpac.collecting.table import read_graded, table_of
from bpac.errors import InputError
from bpac.local.benchmark import COUNT, LOCAL
from bpac.local.chain import Chain
from bpac.local.server import MODEL
from bpac.models.judging import Judge
from bpac.output_files import refuse_overwriting
from bpac.replay.tables.formats import table_format

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

KNOWN: dict[str, Benchmark] = {**BENCHMARKS, LOCAL.name: LOCAL}
# Log-probabilities are what scores are computed from; entropy wants the likeliest tokens too.
DRAFT_BODY = {"logprobs": True, "top_logprobs": 10}


def add_commands(commands: "Commands") -> None:
    """Add the commands to the command line."""
    collect = commands.add_parser("collect", help="ask both models every question and keep the answers")
    collect.add_argument("--benchmark", required=True, choices=tuple(KNOWN), help="what is asked")
    collect.add_argument("--file", type=Path, metavar="FILE", help="its questions; from the hub unless given")
    for role, hint in (("draft", "; log-probabilities are asked for unless it says null"), ("expert", "")):
        _model_options(collect, role, required=True, hint=hint)
    methods = "how the draft is prompted; the expert is always asked directly"
    collect.add_argument("--method", choices=tuple(METHODS), default="direct", help=methods)
    collect.add_argument("--limit", type=int, metavar="N", help="only N questions, drawn at random, always the same")
    _asking_options(collect)
    collect.add_argument("--out", type=Path, required=True, metavar="ANSWERS", help="file that keeps every answer")
    _json_option(collect, _collect)

    grade = commands.add_parser("grade", help="grade collected answers")
    grade.add_argument("answers", type=Path, metavar="ANSWERS", help="what collect wrote")
    _model_options(grade, "judge", required=False, hint="")
    grade.add_argument("--votes", type=int, default=1, metavar="N", help="marks of the judge that are averaged (1)")
    _asking_options(grade)
    grade.add_argument("--out", type=Path, required=True, metavar="GRADES", help="file that keeps every grade")
    _json_option(grade, _grade)

    table = commands.add_parser("table", help="make a table for replay of graded answers")
    table.add_argument("grades", type=Path, metavar="GRADES", help="what grade wrote")
    table.add_argument("--score", choices=NAMES, default=DEFAULT, help=f"what is the uncertainty ({DEFAULT})")
    table.add_argument(
        "--out", type=Path, required=True, metavar="TABLE", help=".csv, .jsonl (each also .gz) or .parquet"
    )
    _json_option(table, _table)

    chain = commands.add_parser("chain", help="all of it on the local pair: collect, grade, table, replay, report")
    chain.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write, and to go on from")
    chain.add_argument("--questions", type=int, default=COUNT, help=f"fresh questions ({COUNT})")
    chain.add_argument("--prompted", type=int, default=500, metavar="N", help="for the prompting methods (500)")
    chain.add_argument("--seed", type=int, default=0, help="which questions (0)")
    chain.add_argument(
        "--model", type=Path, default=MODEL, metavar="FILE", help="a GGUF file; the model of this package"
    )
    chain.add_argument("--runs", type=int, default=50, help="replays of each policy (50)")
    _json_option(chain, _chain)


def _model_options(parser: argparse.ArgumentParser, role: str, required: bool, hint: str) -> None:
    what = "the judge, for open questions" if role == "judge" else f"the {role}"
    parser.add_argument(f"--{role}-url", required=required, metavar="URL", help=f"server of {what}; /v1 included")
    parser.add_argument(f"--{role}-model", required=required, metavar="MODEL", help="its name there")
    parser.add_argument(f"--{role}-body", metavar="JSON", help=f"further fields of requests to it{hint}")
    parser.add_argument(f"--{role}-key", metavar="KEY", help="its API key, best as env:NAME")


def _asking_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--concurrency", type=int, default=8, metavar="N", help="most requests at the same time (8)")
    parser.add_argument("--retries", type=int, default=4, metavar="N", help="of a failed request, with back-off (4)")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="for one request (600)")
    parser.add_argument("--retry-failed", action="store_true", help="try again what failed before; else it stands")


def _json_option(parser: argparse.ArgumentParser, run: Any) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(run=run)


def _collect(options: argparse.Namespace) -> int:
    draft, expert = _server(options, "draft"), _server(options, "expert")
    benchmark = KNOWN[options.benchmark]
    recipes: dict[Role, Recipe] = {
        "draft": Recipe(options.draft_model, _body(options, "draft"), named_method(options.method)),
        "expert": Recipe(options.expert_model, _body(options, "expert")),
    }
    collection = Collection(
        benchmark,
        _limited(benchmark.load(options.file), options.limit),
        recipes,
        options.out,
        options.concurrency,
        options.retry_failed,
    )
    collected = collection.run({"draft": draft, "expert": expert})
    lines = [f"{collected.questions} questions, {collected.asked} answers asked for now: {options.out}"]
    lines += [
        f"  {role:6}  {collected.answered[role]} answered, {collected.failed[role]} failed"
        for role in collected.answered
    ]
    _warn(f"{count} failed: {reason}" for reason, count in list(collected.reasons.items())[:5])
    if any(collected.failed.values()):
        _warn(["failures are never graded as wrong; ask again with --retry-failed"])
    _print(options, {"answers": str(options.out), **asdict(collected)}, lines)
    return 0 if any(collected.answered.values()) else 1


def _limited(questions: Sequence[Question], limit: int | None) -> list[Question]:
    chosen = list(questions)
    if limit is None:
        return chosen
    if limit < 1:
        raise InputError(f"--limit must be at least 1, got {limit}")
    # Data sets are sorted by subject, so the first few are no sample. A larger limit begins with the same questions.
    random.Random(0).shuffle(chosen)
    return chosen[:limit]


def _body(options: argparse.Namespace, role: str) -> dict[str, Any]:
    """What was asked for on the command line, over the paper's sampling where the model is the paper's."""
    model, text = getattr(options, f"{role}_model"), getattr(options, f"{role}_body")
    sampling = asdict(SAMPLINGS[model]) if model in SAMPLINGS else {}
    sampling.pop("model", None)
    try:
        given = json.loads(text or "{}")
    except ValueError as error:
        raise InputError(f"--{role}-body is not JSON ({error}): {text}") from error
    if not isinstance(given, dict):
        raise InputError(f"--{role}-body must be a JSON object, got {text}")
    return {**(DRAFT_BODY if role == "draft" else {}), **sampling, **given}


def _server(options: argparse.Namespace, role: str) -> Server:
    url, model, key = (getattr(options, f"{role}_{name}") for name in ("url", "model", "key"))
    server = Server(url, model, key, options.timeout, options.retries)
    try:
        server.client()  # it connects to nothing yet, but knows what it cannot use
    except InputError as error:
        # The client calls its settings by other names than those that were typed.
        typed = {"base_url": f"--{role}-url", "api_key": f"--{role}-key"}
        option = next((option for name, option in typed.items() if str(error).startswith(name)), "")
        raise InputError(f"{option}: {error}" if option else str(error)) from error
    return server


def _grade(options: argparse.Namespace) -> int:
    grades = asyncio.run(_graded(options))
    known = sum(not grade.unknown for grade in grades)
    reasons: dict[str, int] = {}
    for grade in grades:
        if grade.unknown:
            reasons[grade.unknown] = reasons.get(grade.unknown, 0) + 1
    _warn(f"{count} not graded: {why}" for why, count in reasons.items())
    report = {"grades": str(options.out), "questions": len(grades), "known": known, "reasons": reasons}
    _print(options, report, [f"{known} of {len(grades)} questions graded: {options.out}"])
    return 0


async def _graded(options: argparse.Namespace) -> list[Grade]:
    name = read_settings(options.answers, ANSWERS)["benchmark"]
    if name not in KNOWN:
        raise InputError(f"{options.answers} answers a benchmark that is not known: {name!r}")
    what = (KNOWN[name], options.answers, options.out)
    if not options.judge_url and not options.judge_model:
        return await Grading(*what, retry_failed=options.retry_failed).run()
    if not (options.judge_url and options.judge_model):
        raise InputError("a judge needs both --judge-url and --judge-model")
    body = _body(options, "judge")
    async with _server(options, "judge").client(body) as client:
        judge = Judge(client, votes=options.votes, timeout=options.timeout)
        judged_by = {"model": options.judge_model, "body": body, "votes": options.votes}
        return await Grading(*what, judge, judged_by, options.concurrency, options.retry_failed).run()


def _table(options: argparse.Namespace) -> int:
    refuse_overwriting({"--out": options.out}, [options.grades])
    table_format(options.out)  # a wrong name fails before the work
    rows = table_of(read_graded(options.grades), options.score)
    rows.write(options.out)
    summary = rows.summary()
    _warn(f"{count} left out: {why} ({rows.examples[why]})" for why, count in rows.left_out.items())
    _warn(f"no column uncertainty_{name}: {why}" for name, why in rows.scores_left_out.items())
    _print(options, {"table": str(options.out), **summary}, [f"{len(rows)} rows: {options.out}", *_described(summary)])
    return 0


def _described(summary: Mapping[str, Any]) -> list[str]:
    lines = []
    for role in ("draft", "expert"):
        right, tokens = summary[f"{role}_accuracy"], summary[f"{role}_tokens"]
        words = [f"right in {right:.1%}"] if right is not None else []
        words += [f"{tokens:,.1f} tokens an answer"] if tokens is not None else []
        if words:
            lines.append(f"  {role:6}  {', '.join(words)}")
    lines.append(f"  keeping every draft would lose {summary['loss']:.2%}")
    known = {name: value for name, value in (summary["auroc"] or {}).items() if value is not None}
    lines += [f"  AUROC {value:.3f}  {name}" for name, value in known.items()]
    return lines


def _chain(options: argparse.Namespace) -> int:
    figures = Chain(options.out, options.questions, options.prompted, options.seed, options.runs, options.model).run()
    _warn(f"{count} left out: {why} ({figures['examples'][why]})" for why, count in figures["reasons"].items())
    lines = [f"{figures['rows']} of {figures['questions']} fresh questions in {figures['table']}", *_described(figures)]
    lines.append("   ε    router      expert calls   tokens   loss served   replays above ε")
    for one in figures["routers"]:
        calls, tokens, risk = (one[name]["mean"] for name in ("expert_call_rate", "token_ratio", "empirical_risk"))
        lines.append(
            f"  {one['epsilon']:.2f}  {one['policy']:10}  {calls:12.1%}  {tokens:7.1%}  {risk:12.2%}  "
            f"{one['above_epsilon']:15.0%}"
        )
    for row in figures["prompting"]:
        ratio = "" if row["token_ratio"] is None else f", {row['token_ratio']:.0%} of the expert's tokens"
        share = row["right"] / row["questions"]
        lines.append(
            f"  {row['method']}: {share:.1%} right, {row['unknown']} of {row['questions']} not gradable{ratio}"
        )
    lines.append(f"report: {figures['report']}")
    _print(options, figures, lines)
    return 0


def _warn(lines: Any) -> None:
    sys.stderr.writelines(f"bpac: {line}\n" for line in lines)


def _print(options: argparse.Namespace, report: Mapping[str, Any], lines: Sequence[str]) -> None:
    sys.stdout.write((json.dumps(report) if options.json else "\n".join(lines)) + "\n")
