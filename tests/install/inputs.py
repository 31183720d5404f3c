"""Files that commands under test read."""

import json
import re
from contextlib import chdir
from pathlib import Path

from bpac.cli.program import main
from bpac.testing import Reply, Request, ScriptedServer

# A server that does not exist.
NOWHERE = "http://127.0.0.1:9/v1"


def collect_command(base_url: str, benchmark: str, file: str | None = "questions.jsonl") -> list[str]:
    """The command that asks both models of a server the questions in a file, or those on the hub."""
    words = ["collect", "--benchmark", benchmark, "--out", "answers.jsonl", *(["--file", file] if file else [])]
    for role in ("draft", "expert"):
        words += [f"--{role}-url", base_url, f"--{role}-model", role]
    return words


def write_answers(work: Path) -> None:
    """Answers of two models to four questions of mathematics: decimals, where the right answers are fractions."""
    questions = [{"problem": f"Halve {number}.", "answer": rf"\frac{{{number}}}{{2}}"} for number in range(1, 5)]
    write_lines(work / "questions.jsonl", questions)

    def script(request: Request) -> Reply:
        number = int(re.findall(r"\d+", request.question)[0])
        return Reply(rf"\boxed{{{number / 2}}}", probability=0.9)

    with ScriptedServer(script) as server, chdir(work):
        assert main(collect_command(server.base_url, "math")) == 0


def write_grades(work: Path) -> None:
    """The same answers, graded."""
    write_answers(work)
    assert main(["grade", str(work / "answers.jsonl"), "--out", str(work / "grades.jsonl")]) == 0


def write_table(work: Path) -> None:
    """A table of 300 rows."""
    rows = [f"{number % 100 / 100},{int(number % 7 == 0)}\n" for number in range(300)]
    (work / "table.csv").write_text("uncertainty,loss\n" + "".join(rows), encoding="utf-8")


def write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    """Write one JSON object per line."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
