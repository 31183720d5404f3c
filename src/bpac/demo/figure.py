"""The figure of a demo: threshold, expert calls, certificate and actual loss over the rounds of its journal."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bpac.betting.bounds.certificate import Certificate
from bpac.demo.directory import ROUTE, DemoDirectory
from bpac.demo.ground_truth import GroundTruth
from bpac.gateway.config.file import load_config
from bpac.replay.figures.canvas import COLOURS, format_panel, new_figure
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.rebuild import follow, opened
from bpac.stores import open_store
from bpac.stores.export import chosen_game

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Number of rounds at which the certificate is drawn.
POINTS = 300


@dataclass(slots=True)
class JournalSeries:
    """Threshold, expert calls and certificate over the rounds of a journal.

    Parameters
    ----------
    epsilon: promised bound on the loss.
    thresholds: threshold in force at each round.
    calls: whether the expert was called in each round.
    certificates: the certificate at some rounds, including the last one.
    """

    epsilon: float
    thresholds: list[float] = field(default_factory=list)
    calls: list[bool] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)


def read_series(directory: DemoDirectory) -> JournalSeries:
    """The series of a demo's only game, computed from its journal alone."""
    store = open_store(load_config(directory.config).store, read_only=True)
    try:
        entries = [entry for entry, _ in store.entries(chosen_game(store, ROUTE, None))]
    finally:
        store.close()
    return _series(entries)


def _series(entries: list[Entry]) -> JournalSeries:
    route = opened(entries[0])
    series = JournalSeries(route.terms.epsilon)
    rounds = sum(isinstance(entry, Decision) for entry in entries)
    shown = set(_spaced(rounds))
    latest, threshold = 0, 0.0
    for entry in entries[1:]:
        # Before the next decision and not after this one: the outcomes that arrived in between are included.
        if isinstance(entry, Decision) and route.step in shown:
            series.certificates.append(route.certificate())
        follow(route, [entry])
        if isinstance(entry, Decision):
            # A slow draft is decided with the threshold of its arrival, which is not the threshold of this moment.
            if entry.seen >= latest:
                latest, threshold = entry.seen, entry.threshold
            series.thresholds.append(threshold)
            series.calls.append(entry.call_expert)
    series.certificates.append(route.certificate())
    return series


def _spaced(rounds: int) -> Iterator[int]:
    return (int(step) for step in np.linspace(1, rounds, min(rounds, POINTS)))


def draw_demo(series: JournalSeries, truth: GroundTruth | None, title: str) -> "Figure":
    """Threshold, expert calls and loss over the rounds.

    Parameters
    ----------
    series: what the journal says.
    truth: the actual losses, if they are known.
    title: title of the figure.
    """
    figure = new_figure(11.0, 3.6)
    threshold, calls, loss = figure.subplots(1, 3)
    steps = np.arange(1, len(series.calls) + 1)
    blue, limit = COLOURS["portfolio"], COLOURS["limit"]
    threshold.plot(steps, series.thresholds, color=blue, linewidth=1.6)
    calls.plot(steps, 100.0 * np.cumsum(series.calls) / steps, color=blue, linewidth=1.6)
    at = [certificate.rounds for certificate in series.certificates]
    most = [100.0 * certificate.average_upper for certificate in series.certificates]
    loss.plot(at, most, color=blue, linewidth=1.2, label="certificate: upper bound\n(ungraded drafts count as loss 1)")
    if truth is not None:
        known = [truth.losses[step] for step in sorted(truth.losses)]
        served = 100.0 * np.cumsum(known) / np.arange(1, len(known) + 1)
        loss.plot(sorted(truth.losses), served, color="black", linestyle="--", label="actual loss")
    loss.axhline(100.0 * series.epsilon, color=limit, linewidth=1.0, label=f"limit ε = {series.epsilon:g}")
    loss.legend(frameon=False)
    format_panel(threshold, "Threshold", 0.0, 1.15 * max([*series.thresholds, 0.01]))
    format_panel(calls, "Expert calls so far (%)", 0.0, 105.0)
    format_panel(loss, "Average loss so far (%)", 0.0, 400.0 * series.epsilon)
    figure.suptitle(title)
    return figure
