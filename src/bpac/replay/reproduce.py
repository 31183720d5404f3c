"""Results that can be reproduced by name: numbers as CSV, pictures as PNG and SVG, and one page with all of it."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING

from bpac.betting.numbers import one_of
from bpac.replay.builtin import builtin_table
from bpac.replay.campaign import METRICS, Outcome, run_experiments
from bpac.replay.experiments import EXPERIMENTS, PUBLISHED, SUMMARY_EPSILON, Experiment, named_experiment
from bpac.replay.figures import as_svg, draw_paths, draw_stall, draw_summary, draw_sweep, save
from bpac.replay.replay import oracle_expert_call_rate
from bpac.replay.report import Section, write_report
from bpac.replay.stall import StallRow, stall_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("stall", *(experiment.name for experiment in EXPERIMENTS))


def reproduce(names: Sequence[str], runs: int, out: Path) -> list[Path]:
    """Reproduce results and return the files that were written, the page last.

    Parameters
    ----------
    names: which; ``all`` for all.
    runs: replays of each method.
    out: where to write. Finished runs are kept there too, so that a stopped command can go on.
    """
    for name in names:
        one_of(name, "NAME", ("all", *NAMES))
    wanted = NAMES if "all" in names else tuple(dict.fromkeys(names))
    out.mkdir(parents=True, exist_ok=True)
    experiments = [named_experiment(name) for name in wanted if name != "stall"]
    outcomes = run_experiments(experiments, runs, out / "runs") if experiments else {}
    written: list[Path] = []
    sections = []
    if set(wanted) >= {f"epsilon-{stream}" for stream in PUBLISHED}:
        sections.append(_summary(outcomes, out, written))
    if "stall" in wanted:
        sections.append(_stall(out, written))
    sections += [_experiment(experiment, outcomes[experiment.name], out, written) for experiment in experiments]
    page = out / "report.html"
    write_report(sections, page)
    return [*written, page]


def _summary(outcomes: Mapping[str, Sequence[Outcome]], out: Path, written: list[Path]) -> Section:
    """The paper's figures beside ours, and how much of the way to the oracle the portfolio goes."""
    header = ["stream", "", "ER", "ECP", "TP", "gap to the oracle closed"]
    rows: list[list[str]] = []
    bars: dict[str, tuple[float, float, float]] = {}
    for stream, published in PUBLISHED.items():
        at = [outcome for outcome in outcomes[f"epsilon-{stream}"] if outcome.method.epsilon == SUMMARY_EPSILON]
        paper, portfolio = at
        oracle = oracle_expert_call_rate(builtin_table(stream), SUMMARY_EPSILON)
        calls = [outcome.final("expert_call_rate")[0] for outcome in at]
        closed = (calls[0] - calls[1]) / (calls[0] - oracle)
        bars[stream] = (calls[0], calls[1], oracle)
        rows.append([stream, "the paper, on its own stream", *published, ""])
        rows.append([stream, "ours, the paper's policy", *_percents(paper), ""])
        rows.append([stream, "ours, portfolio", *_percents(portfolio), f"{closed:.0%}"])
        rows.append([stream, "the oracle, exploring 5 %", "", f"{100 * oracle:.1f} %", "", ""])
    figure = draw_summary(bars, SUMMARY_EPSILON)
    written += [_write_csv(out / "summary.csv", header, rows), *_write_pictures(out, "summary", figure)]
    text = (
        f"At ε = {SUMMARY_EPSILON}. The built-in streams were shaped so that the paper's policy has about the paper's "
        "expert call rate and token ratio; its risk and all other figures were then found."
    )
    return Section("summary", "The paper's figures and ours", text, as_svg(figure), header, rows)


def _stall(out: Path, written: list[Path]) -> Section:
    header = [field.name for field in fields(StallRow)]
    rows = [astuple(row) for row in stall_rows()]
    figure = draw_stall(stall_rows(tuple(0.015 + 0.0005 * i for i in range(131))), epsilon=0.08)
    written += [_write_csv(out / "stall.csv", header, rows), *_write_pictures(out, "stall", figure)]
    table = [[f"{value:.5f}" for value in row] for row in rows]
    text = "Log-growth of wealth per round at ε = 0.08 when every draft below the threshold is explored at rate 0.05."
    return Section("stall", "Where the paper's bet stalls", text, as_svg(figure), header, table)


def _experiment(experiment: Experiment, outcomes: Sequence[Outcome], out: Path, written: list[Path]) -> Section:
    figure = (draw_sweep if experiment.varied else draw_paths)(experiment, outcomes)
    header = ["method", "at", "epsilon", *(f"{metric}_{part}" for metric in METRICS for part in ("mean", "std"))]
    methods = [(outcome, outcome.method) for outcome in outcomes]
    final = [(m.label, m.at, m.epsilon, *(x for metric in METRICS for x in o.final(metric))) for o, m in methods]
    paths = ["method", "at", "step", *header[3:]]
    written.append(_write_csv(out / f"{experiment.name}.csv", header, final))
    written.append(_write_csv(out / f"{experiment.name}-paths.csv", paths, _path_rows(outcomes)))
    written += _write_pictures(out, experiment.name, figure)
    shown = ["method", *([experiment.varied] if experiment.varied else []), "ε", "ER", "ECP", "TP", "threshold"]
    text = (
        f"Built-in stream {experiment.stream}, {len(outcomes[0].paths)} runs: "
        "mean ± standard deviation at the end of the stream."
    )
    table = [_shown(outcome, experiment) for outcome in outcomes]
    return Section(experiment.name, experiment.title, text, as_svg(figure), shown, table)


def _shown(outcome: Outcome, experiment: Experiment) -> list[str]:
    at = [f"{outcome.method.at:g}"] if experiment.varied else []
    mean, std = outcome.final("threshold")
    return [outcome.method.label, *at, f"{outcome.method.epsilon:g}", *_percents(outcome), f"{mean:.3f} ± {std:.3f}"]


def _percents(outcome: Outcome) -> list[str]:
    """ER, ECP and TP at the end, as people read them."""
    return ["{:.1f} ± {:.1f} %".format(*(100 * x for x in outcome.final(metric))) for metric in METRICS[:3]]


def _path_rows(outcomes: Sequence[Outcome]) -> Iterable[tuple[object, ...]]:
    for outcome in outcomes:
        mean, std = outcome.paths.mean(axis=0), outcome.paths.std(axis=0)
        for k, step in enumerate(outcome.steps.tolist()):
            values = (float(part[metric, k]) for metric in range(len(METRICS)) for part in (mean, std))
            yield (outcome.method.label, outcome.method.at, step, *values)


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def _write_pictures(out: Path, name: str, figure: "Figure") -> list[Path]:
    pictures = [out / f"{name}.png", out / f"{name}.svg"]
    for picture in pictures:
        save(figure, picture)
    return pictures
