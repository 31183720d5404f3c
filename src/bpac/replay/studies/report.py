"""The report: one HTML page without external files, with a table of contents and a dark mode."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bpac.output_files import whole_file

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 1rem 0; background: white; padding: 0.5rem; border-radius: 6px; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: 0.25rem 0.75rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
"""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One section of the report: a figure and its numbers.

    Parameters
    ----------
    name: its anchor on the page.
    title: what it shows.
    text: how it was made, and how to read it.
    svg: the figure as an SVG element; empty if there is none.
    header, rows: the table of numbers.
    """

    name: str
    title: str
    text: str
    svg: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_report(sections: Sequence[ReportSection], path: Path) -> None:
    """Write the page; an existing file is replaced."""
    contents = "".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in sections)
    body = "".join(_section(section) for section in sections)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>bpac: results</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><h1>bpac: results</h1><nav><ol>{contents}</ol></nav>{body}</body></html>\n"
    )
    with whole_file(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8")


def _section(section: ReportSection) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in section.header)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in section.rows)
    picture = f'<figure role="img" aria-label="{escape(section.title)}">{section.svg}</figure>' if section.svg else ""
    return (
        f'<section id="{section.name}"><h2>{escape(section.title)}</h2><p>{escape(section.text)}</p>{picture}'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>"
    )
