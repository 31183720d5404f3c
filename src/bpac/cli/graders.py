"""The command that measures the graders: ``bpac graders``."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpac.benchmarks.benchmark import Question
from bpac.errors import InputError, MissingExtra
from bpac.grader_accuracy.benchmark_pairs import load_questions
from bpac.grader_accuracy.rates import MeasuredGrader, measured_graders
from bpac.grading.mathematics.equivalence import check_algebra

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

PAIRS = 20_000
# The graders that work out formulas.
ALGEBRA = ("mathematics", "benchmark math", "benchmark gsm8k", "benchmark bbh")


def add_commands(commands: "Commands") -> None:
    """Add the command to the command line."""
    graders = commands.add_parser("graders", help="measure how often each grader is wrong on labelled pairs of answers")
    pairs = f"pairs of each label and source for every grader (default: {PAIRS})"
    graders.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=pairs)
    graders.add_argument("--grader", action="append", metavar="NAME", help="measure only this grader (default: all)")
    bench = "folder with benchmark files, for pairs of their answers and for their own graders"
    graders.add_argument("--bench", type=Path, metavar="DIR", help=bench)
    graders.add_argument("--seed", type=int, default=0, help="random seed of the pairs (default: 0)")
    graders.add_argument("--json", action="store_true", help="one JSON object on standard output")
    graders.set_defaults(run=_graders)


def _graders(options: argparse.Namespace) -> int:
    if options.pairs < 1:
        raise InputError(f"--pairs must be at least 1, got {options.pairs}")
    questions: Mapping[str, Sequence[Question]] = load_questions(options.bench) if options.bench else {}
    graders = measured_graders(questions, options.seed)
    known = [grader.name for grader in graders]
    for name in options.grader or ():
        if name not in known:
            raise InputError(f"--grader {name!r} is not known: give one of {', '.join(known)}")
    chosen = [grader for grader in graders if not options.grader or grader.name in options.grader]
    found = {}
    for grader in _usable(chosen):
        sys.stderr.write(f"bpac: measuring {grader.name}\n")
        found[grader.name] = _measured(grader, options.pairs)
    lines = (
        [json.dumps({"pairs": options.pairs, "seed": options.seed, "graders": found})]
        if options.json
        else _table(found)
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if any(one["different"]["false"] for one in found.values()) else 0


def _usable(graders: Sequence[MeasuredGrader]) -> list[MeasuredGrader]:
    """The graders that can be measured with what is installed; which cannot is phrase_answer on standard error."""
    try:
        check_algebra()
    except MissingExtra as error:
        sys.stderr.writelines(f"bpac: {one.name} is not measured: {error}\n" for one in graders if one.name in ALGEBRA)
        return [grader for grader in graders if grader.name not in ALGEBRA]
    return list(graders)


def _measured(grader: MeasuredGrader, pairs: int) -> dict[str, Any]:
    return {
        "different": grader.count(pairs, same=False).to_json(),
        "same": grader.count(pairs, same=True).to_json(),
    }


def _table(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [
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
