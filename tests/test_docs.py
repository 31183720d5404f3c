"""The documents are true: their code runs, and the generated page is the one the program would write."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts.write_cli_docs import PAGE, cli_page

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_command_line_page_is_current() -> None:
    """docs/cli.md is what ``scripts/write_cli_docs.py`` writes."""
    assert PAGE.read_text(encoding="utf-8") == cli_page()


def test_the_python_in_the_readme_runs() -> None:
    """Every Python block of the README runs as it stands."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        ran = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert "served loss" in ran.stdout


def test_what_covers_the_guarantee_exists() -> None:
    """Every test that docs/guarantee.md names is there."""
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8"))
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_files_that_contributors_are_sent_to_exist() -> None:
    """Every test and every package that CONTRIBUTING.md names is there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {ROOT / path for path in re.findall(r"(?:tests|src)/[\w/.]+\w", text)}
    cells = [line.split("|")[2].partition("(")[0] for line in text.splitlines() if line.startswith("|")]
    named |= {ROOT / "src" / "bpac" / name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}
    assert named
    assert [path for path in sorted(named) if not path.exists()] == []


def test_files_of_the_architecture_exist() -> None:
    """Every file and folder that docs/architecture.md sends a reader to is there."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py|/[a-z_]+\.py))[`, ]", page))
    assert len(named) > 25
    places = (ROOT, ROOT / "src" / "bpac")
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link and picture of a page exists."""
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target
