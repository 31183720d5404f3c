"""The command ``import``: a table for replay, and questions for collect, from logs of other programs."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from bpac.cli.output import add_json_option, counted, print_report, warn
from bpac.cli.standard_input import STANDARD_INPUT, spooled
from bpac.errors import BpacError, InputError
from bpac.importing.formats import FORMATS
from bpac.importing.graded_pairs import SCORES
from bpac.importing.imported import ImportedLog, LogReader, seen_models
from bpac.importing.log_files import LogFile
from bpac.importing.mapping import Mapped
from bpac.importing.pairing import PAIR_BY
from bpac.importing.roles import chosen_roles
from bpac.output_files import refuse_overwriting, whole_file
from bpac.replay.tables.formats import open_text, table_format
from bpac.replay.tables.writing import write_columns

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

# From this share of unknown losses on, the report says what to do about them.
MANY_UNKNOWN = 0.1


def add_command(commands: "Commands") -> None:
    """Add the command to the command line."""
    import_ = commands.add_parser(
        "import", help="make a table for bpac replay from own logs: OpenAI, LiteLLM, Langfuse, OpenTelemetry, CSV"
    )
    import_.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="log file of JSON lines, JSON or CSV, each also compressed with gzip; - for standard input",
    )
    import_.add_argument(
        "--format", choices=FORMATS, help="format of all files (default: by the first record of each file)"
    )
    import_.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=COLUMN",
        help="take a value from a column or field, with dots into objects (metadata.score); may be repeated. NAME is "
        "uncertainty, confidence (1 − uncertainty), loss, draft_correct, expert_correct, reference (the correct "
        "answer), id (what the two answers to a question have in common), prompt, model, role, answer, draft, expert "
        "(both answers in one row), logprobs, tokens, draft_tokens, expert_tokens, category, or feature_NAME",
    )
    import_.add_argument(
        "--draft",
        metavar="MODEL",
        help="name of the draft's model in the logs (default: of two models, the one with shorter answers)",
    )
    import_.add_argument("--expert", metavar="MODEL", help="name of the expert's model (default: the other one)")
    import_.add_argument(
        "--pair-by",
        choices=PAIR_BY,
        default="auto",
        help="what the two answers to a question have in common: trace, all messages (prompt), the last message of the "
        "user (question); auto tries trace and messages (default: auto)",
    )
    import_.add_argument(
        "--score", choices=SCORES, help="score for the column uncertainty (default: the one that most rows have)"
    )
    import_.add_argument(
        "--out", type=Path, metavar="TABLE", help="file for the table: .csv, .jsonl (each also .gz) or .parquet"
    )
    import_.add_argument(
        "--questions-out",
        type=Path,
        metavar="FILE",
        help="write all questions with their recorded answers to this .jsonl file (also .gz): bpac collect --questions "
        "asks the model that did not answer, and bpac grade can use a judge",
    )
    add_json_option(import_)
    import_.set_defaults(run=_import)


def _import(options: argparse.Namespace) -> int:
    _check(options)
    with ExitStack() as stack:
        files = [
            LogFile(stack.enter_context(spooled()), "standard input")
            if name == STANDARD_INPUT
            else LogFile(Path(name), name)
            for name in options.logs
        ]
        reader = LogReader(files, Mapped.parse(options.map), options.format)
        # Which model is the draft is known when all have been seen, so the files are read twice.
        seen = seen_models(_calls(reader, "models"))
        roles = chosen_roles(seen, options.draft, options.expert)
        imported = ImportedLog(roles, options.questions_out is not None, seen.prompts)
        imported.read(_calls(reader, "import"), options.pair_by)
    if options.questions_out is not None:
        _write_questions(imported.questions, options.questions_out)
    score, columns = imported.table(options.score)
    report = _report(options, reader, imported, score, columns)
    warn(f"{count} left out: {why} ({imported.examples[why]})" for why, count in imported.left_out.most_common())
    warn(report["advice"])
    if options.out is not None:
        if not imported.rows:
            raise BpacError("the table would be empty: see the reasons above")
        write_columns(columns, options.out)
    print_report(options, report, _text(report))
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.out is None and options.questions_out is None:
        raise InputError("give --out TABLE, --questions-out FILE, or both")
    if options.logs.count(STANDARD_INPUT) > 1:
        raise InputError("standard input (-) can be read once: give it once")
    outputs = {"--out": options.out, "--questions-out": options.questions_out}
    refuse_overwriting(outputs, [name for name in options.logs if name != STANDARD_INPUT])
    if options.out is not None:
        table_format(options.out)
    if options.questions_out is not None and not options.questions_out.name.removesuffix(".gz").endswith(".jsonl"):
        raise InputError(f"--questions-out {options.questions_out}: the name must end in .jsonl or .jsonl.gz")


def _calls(reader: LogReader, name: str) -> Any:
    """The calls of all files, with a progress bar in bytes on standard error."""
    sizes = {file.name: file.path.stat().st_size if file.path.is_file() else 0 for file in reader.files}
    with tqdm(total=sum(sizes.values()), desc=name, unit="B", unit_scale=True, leave=False, mininterval=0.5) as bar:
        done: dict[str, int] = {}

        def progress(file: LogFile, position: int) -> None:
            bar.update(position - done.get(file.name, 0))
            done[file.name] = position

        yield from reader.calls(progress)


def _write_questions(questions: Sequence[dict[str, Any]], path: Path) -> None:
    with whole_file(path) as unfinished, open_text(unfinished, "wt") as file:
        file.writelines(json.dumps(question) + "\n" for question in questions)


def _report(
    options: argparse.Namespace, reader: LogReader, imported: ImportedLog, score: str, columns: dict[str, list[Any]]
) -> dict[str, Any]:
    losses = columns["loss"]
    return {
        "table": str(options.out) if options.out is not None else None,
        "questions": str(options.questions_out) if options.questions_out is not None else None,
        "formats": reader.formats,
        "calls": imported.calls,
        "rows": len(losses),
        "draft": imported.roles.draft or None,
        "expert": imported.roles.expert or None,
        "guessed": imported.roles.guessed or None,
        "score": score if losses else None,
        "loss": float(np.mean(losses)) if losses else None,
        "unknown_losses": dict(imported.unknown),
        "left_out": dict(imported.left_out),
        "examples": imported.examples,
        "unpaired": dict(imported.lonely),
        "advice": _advice(options, imported),
    }


def _advice(options: argparse.Namespace, imported: ImportedLog) -> list[str]:
    """What to do about what is missing."""
    lines = []
    rows, unknown = len(imported.rows), imported.unknown.total()
    for role, count in imported.lonely.items():
        other = "expert" if role == "draft" else "draft"
        questions = options.questions_out or "questions.jsonl"
        write = "" if options.questions_out else f"write the questions with --questions-out {questions}, then "
        lines.append(
            f"only the {role} answered {counted(count, 'question')}: {write}bpac collect --questions {questions} "
            f"--{other}-url URL --{other}-model MODEL --out answers.jsonl asks the {other}, and bpac grade and bpac "
            "table make the table"
        )
    if rows and imported.lonely["draft"]:
        lines.append(
            "the table is a sample of the traffic only if chance decided which questions the expert answered: where a "
            "router sent it the hard ones, ask it the others, too"
        )
    if rows and unknown >= MANY_UNKNOWN * rows:
        lines.append(
            f"{unknown} of {rows} losses are unknown and count as 1, as they do in the gateway "
            f"({_counted(imported.unknown)}); prose needs a judge: --questions-out, bpac collect --questions, "
            "bpac grade --judge-url"
        )
    return lines


def _text(report: dict[str, Any]) -> list[str]:
    table = f": {report['table']}" if report["table"] else ""
    lines = [f"{counted(report['calls'], 'call')} read, {counted(report['rows'], 'row')}{table}"]
    if report["draft"] or report["expert"]:
        why = f" (assumed, because {report['guessed']}; --draft and --expert choose)" if report["guessed"] else ""
        lines.append(f"  draft {report['draft'] or 'unknown'}, expert {report['expert'] or 'unknown'}{why}")
    if report["rows"]:
        lines.append(f"  uncertainty: {report['score']}; average loss if every draft is kept: {report['loss']:.2%}")
    if report["unknown_losses"]:
        lines.append(f"  losses that are unknown and count as 1: {_counted(Counter(report['unknown_losses']))}")
    if report["questions"]:
        lines.append(f"  questions with their recorded answers: {report['questions']}")
    return lines


def _counted(reasons: Counter[str]) -> str:
    return ", ".join(f"{count} {why}" for why, count in reasons.most_common())
