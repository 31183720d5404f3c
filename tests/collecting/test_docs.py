"""The commands and programs in docs/collecting.md and docs/grading.md work."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bpac.cli.program import build_parser
from tests.ports import free_port

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = [
    (page, *block)
    for page in ("collecting.md", "grading.md")
    for block in re.findall(r"```(sh|python)\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
]
SHELL = [code for _, language, code in BLOCKS if language == "sh"]
PYTHON = [code for _, language, code in BLOCKS if language == "python"]


@pytest.mark.parametrize("block", SHELL)
def test_documented_commands_have_valid_options(block: str) -> None:
    """Every ``bpac`` command of the pages can be parsed."""
    commands = block.replace("\\\n", " ").splitlines()
    parsed = 0
    for command in commands:
        program, *words = shlex.split(command, comments=True)
        if program == "bpac":
            build_parser(words[0]).parse_args(words)
            parsed += 1
    assert parsed


@pytest.mark.parametrize("block", PYTHON)
def test_documented_programs_run(block: str) -> None:
    """Every Python block runs without an error."""
    subprocess.run([sys.executable, "-c", block], check=True)


def test_the_steps_with_the_local_model_work(tmp_path: Path) -> None:
    """The last block of docs/collecting.md makes a table, here with fewer questions and on a free port."""
    block = [code for page, _, code in BLOCKS if page == "collecting.md"][-1]
    program = block.replace("8001", str(free_port())).replace("--limit 1000", "--limit 8 --retries 9")
    folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    program = f"set -e\ntrap 'kill %1' EXIT\n{program}"
    ran = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "table.csv").read_text(encoding="utf-8").startswith("id,category,uncertainty,")
