"""The command ``chain``: collect, grade, table, replay and a report with the small model of this package."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpac.cli.commands.table import summary_lines
from bpac.cli.output import add_json_option, counted, print_report, warn
from bpac.local.benchmark import COUNT
from bpac.local.chain import ChainRun
from bpac.local.server import MODEL

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands") -> None:
    """Add the command to the command line."""
    about = "run collect, grade, table and replay on a small model on this machine, and write a report"
    chain = commands.add_parser("chain", help=about)
    out = "folder for all files; a folder from an earlier run is continued"
    chain.add_argument("--out", type=Path, required=True, metavar="DIR", help=out)
    questions = f"number of questions, which the model was not trained on (default: {COUNT})"
    chain.add_argument("--questions", type=int, default=COUNT, metavar="N", help=questions)
    prompted = "number of those questions on which prompting methods are tried; 0 skips them (default: 500)"
    chain.add_argument("--prompted", type=int, default=500, metavar="N", help=prompted)
    chain.add_argument("--seed", type=int, default=0, help="random seed of the questions (default: 0)")
    model = "GGUF file of the model (default: the model in this package)"
    chain.add_argument("--model", type=Path, default=MODEL, metavar="FILE", help=model)
    chain.add_argument("--runs", type=int, default=50, metavar="N", help="number of replays per policy (default: 50)")
    add_json_option(chain)
    chain.set_defaults(run=_chain)


def _chain(options: argparse.Namespace) -> int:
    run = ChainRun(options.out, options.questions, options.prompted, options.seed, options.runs, options.model)
    figures = run.run()
    warn(f"{count} left out: {why} ({figures['examples'][why]})" for why, count in figures["reasons"].items())
    lines = [f"{figures['rows']:,} of {counted(figures['questions'], 'question')} are in {figures['table']}"]
    lines += summary_lines(figures)
    lines.append("   ε    router      expert calls   tokens   actual loss   replays above ε")
    for one in figures["routers"]:
        calls, tokens, risk = (one[name]["mean"] for name in ("expert_call_rate", "token_ratio", "empirical_risk"))
        lines.append(
            f"  {one['epsilon']:.2f}  {one['policy']:10}  {calls:12.1%}  {tokens:7.1%}  {risk:12.2%}  "
            f"{one['above_epsilon']:15.0%}"
        )
    for row in figures["prompting"]:
        lines.append(f"  {row['method']}: {', '.join(_described(row))}")
    lines.append(f"report: {figures['report']}")
    print_report(options, figures, lines)
    return 0


def _described(row: Mapping[str, Any]) -> list[str]:
    """The figures of a prompting method; unknown ones are left out."""
    figures = {"accuracy": "correct", "loss": "loss", "token_ratio": "of the expert's tokens"}
    known = [f"{row[name]:.1%} {words}" for name, words in figures.items() if row[name] is not None]
    return [*known, *([f"{row['unknown']} of {row['questions']} not graded"] if row["unknown"] else [])]
