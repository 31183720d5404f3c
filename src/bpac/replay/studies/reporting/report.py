"""The report: one HTML page without external files, with a checklist as table of contents and a dark mode."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from bpac.output_files import whole_file
from bpac.replay.studies.reporting.statements import Finding, Mark

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --good: #56d364; --bad: #e3b341; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 84rem; margin: 2rem auto; padding: 0 1rem; }
p, pre { max-width: 50rem; }
.figure { display: grid; gap: 0.5rem; margin: 1rem 0; }
.figure { grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
.figure figure { margin: 0; background: white; padding: 0.5rem; border-radius: 6px; }
.figure svg { width: 100%; height: auto; max-width: 46rem; display: block; margin: auto; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
th, td { padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; vertical-align: top; }
th, td { border-bottom: 1px solid var(--line); }
td.number { white-space: nowrap; }
td:first-child { min-width: 9rem; }
section { border-top: 1px solid var(--line); margin-top: 2.5rem; }
.agrees { color: var(--good); } .differs { color: var(--bad); }
pre { white-space: pre-wrap; border: 1px solid var(--line); border-radius: 6px; padding: 0.75rem; }
pre { font-size: 0.8125rem; }
@media (max-width: 40rem) { body { margin: 1rem auto; } th, td { padding-right: 0.5rem; } }
"""


@dataclass(frozen=True, slots=True)
class TableOfNumbers:
    """A table of the report."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One section of the report: a figure and its numbers.

    Parameters
    ----------
    name: its anchor on the page.
    title: what it shows.
    text: how it was made, and how to read it.
    panels: the panels of the figure, as SVG elements with their titles; empty if there is none.
    table: the numbers.
    number: the number of the figure or table of the paper; empty for our own.
    streams: the streams and ε, for the table of contents.
    mark: whether it agrees with the paper; none for our own.
    findings: what the paper prints or says, beside ours.
    quoted: a text to be shown literally; empty if there is none.
    """

    name: str
    title: str
    text: str
    panels: Sequence[tuple[str, str]]
    table: TableOfNumbers
    number: str = ""
    streams: str = ""
    mark: Mark | None = None
    findings: Sequence[Finding] = field(default_factory=tuple)
    quoted: str = ""

    @property
    def heading(self) -> str:
        """The title with its number."""
        return f"{self.number}: {self.title}" if self.number else self.title


def write_report(
    sections: Sequence[ReportSection],
    path: Path,
    *,
    title: str = "bpac: results",
    methods: str = "",
    overview: Sequence[tuple[str, str]] = (),
) -> None:
    """Write the page; an existing file is replaced.

    Parameters
    ----------
    sections: the sections, in order.
    path: the file.
    title: the title of the page.
    methods: a paragraph that says how the figures were made; empty for none.
    overview: the panels of a figure below the table of contents; empty for none.
    """
    paper = [section for section in sections if section.number]
    own = [section for section in sections if not section.number]
    links = "".join(f'<li><a href="#{one.name}">{escape(one.title)}</a></li>' for one in own)
    contents = _checklist(paper) if paper else ""
    if own:
        contents += f"{'<h2>Beyond the paper</h2>' if paper else ''}<ol>{links}</ol>"
    about = f'<h2 id="methods">How the figures were made</h2><p>{escape(methods)}</p>' if methods else ""
    body = "".join(_section(section) for section in sections)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><nav>{contents}</nav>{_figure(overview, 'Overview')}{about}{body}"
        "</body></html>\n"
    )
    with whole_file(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8")


def _checklist(sections: Sequence[ReportSection]) -> str:
    rows = "".join(
        f'<tr><td class="number"><a href="#{one.name}">{escape(one.number)}</a></td>'
        f"<td>{escape(one.streams)}</td><td>{escape(one.title)}</td>"
        f"<td>{_count(one.findings)}</td><td>{_mark(one.mark)}</td></tr>"
        for one in sections
    )
    return (
        '<h2>The paper’s results</h2><div class="table"><table><thead><tr><th>paper</th><th>stream, ε</th>'
        "<th>shows</th><th>statements that hold</th><th>here</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _count(findings: Sequence[Finding]) -> str:
    return f"{sum(one.holds for one in findings)} of {len(findings)}" if findings else ""


def _mark(mark: Mark | None) -> str:
    if mark is None:
        return ""
    return f'<span class="{"agrees" if mark.agrees else "differs"}">{escape(mark.words)}</span>'


def _section(section: ReportSection) -> str:
    mark = f"<p><strong>Mark: {_mark(section.mark)}.</strong></p>" if section.mark else ""
    picture = _figure(section.panels, section.heading)
    quoted = f"<pre>{escape(section.quoted)}</pre>" if section.quoted else ""
    said = _table(_findings(section.findings)) if section.findings else ""
    return (
        f'<section id="{section.name}"><h2>{escape(section.heading)}</h2>{mark}<p>{escape(section.text)}</p>'
        f"{quoted}{picture}{said}{_table(section.table)}</section>"
    )


def _figure(panels: Sequence[tuple[str, str]], heading: str) -> str:
    figures = "".join(
        f'<figure role="img" aria-label="{escape(f"{heading}. {title}")}">{svg}</figure>' for title, svg in panels
    )
    return f'<div class="figure">{figures}</div>' if figures else ""


def _findings(findings: Sequence[Finding]) -> TableOfNumbers:
    rows = [[one.said, one.paper, one.ours, "agrees" if one.holds else "differs"] for one in findings]
    return TableOfNumbers(["the paper prints or says", "paper", "here", "mark"], rows, "Checked against the paper")


def _table(table: TableOfNumbers) -> str:
    if not table.rows:
        return ""
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    rows = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in table.rows)
    return f'<div class="table"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(text: str) -> str:
    # Words may break over lines, numbers may not.
    number = ' class="number"' if len(text) <= 24 else ""
    return f"<td{number}>{escape(text)}</td>"
