"""The commands in docs/importing.md and the program in docs/scores.md run."""

import re
import shlex
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.testing import Reply, Request, ScriptedServer

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_commands_of_the_page_run_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log, table, replay, mapped columns, questions, answers of the other model, grades and table."""

    def expert(request: Request) -> Reply:
        return Reply(str(2 * int(request.question.split()[0])))

    monkeypatch.chdir(tmp_path)
    with ScriptedServer(expert) as server:
        # Commands of bpac in this process, which is faster, and all others in a shell.
        lines = "".join(blocks("importing.md", "sh")).splitlines()
        for is_own, group in groupby(lines, lambda line: line.startswith("bpac ")):
            if not is_own:
                subprocess.run(["bash", "-ec", "\n".join(group).replace("python -", f"{sys.executable} -")], check=True)
                continue
            for line in group:
                assert main(shlex.split(line.replace("$EXPERT_URL", server.base_url))[1:]) == 0
        assert len(server.requests) == 400
    said = capsys.readouterr().out
    assert "800 calls read, 400 rows: table.csv" in said
    assert "You would save" in said
    assert Path("table.csv").read_text().count("\n") == Path("asked.csv").read_text().count("\n") == 401


def test_the_program_of_the_scores_page_runs() -> None:
    """The scores are usable from ``bpac.scores``."""
    (program,) = blocks("scores.md", "python")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    uncertainty, words = map(float, ran.stdout.split())
    assert (round(uncertainty, 6), round(words, 6)) == (0.1125, 0.15)
