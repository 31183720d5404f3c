"""The picture of a demo: threshold, expert calls and what is known of the loss, over the rounds of its journal."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bpac.betting.bounds.certificate import Certificate
from bpac.demo.place import ROUTE, Place
from bpac.demo.truth import Truth
from bpac.gateway.config.file import load_config
from bpac.replay.figures.canvas import COLOURS, label, new_figure
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.rebuild import follow, opened
from bpac.stores import open_store
from bpac.stores.export import chosen_game

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Certificates are drawn at so many rounds.
POINTS = 300


@dataclass(slots=True)
class Course:
    """What a journal says of each round, and of some of them what could be certified there.

    Parameters
    ----------
    epsilon: the promise.
    thresholds, calls: by round.
    certificates: at some rounds, the last one included.
    """

    epsilon: float
    thresholds: list[float] = field(default_factory=list)
    calls: list[bool] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)


def course_of(place: Place) -> Course:
    """The course of the one game of a demo, from its journal alone."""
    store = open_store(load_config(place.config).store, read_only=True)
    try:
        entries = [entry for entry, _ in store.entries(chosen_game(store, ROUTE, None))]
    finally:
        store.close()
    return _followed(entries)


def _followed(entries: list[Entry]) -> Course:
    route = opened(entries[0])
    course = Course(route.terms.epsilon)
    rounds = sum(isinstance(entry, Decision) for entry in entries)
    shown = set(_spaced(rounds))
    for entry in entries[1:]:
        # Before the next decision, not after this one: outcomes that came in between belong to it.
        if isinstance(entry, Decision) and route.step in shown:
            course.certificates.append(route.certificate())
        follow(route, [entry])
        if isinstance(entry, Decision):
            course.thresholds.append(entry.threshold)
            course.calls.append(entry.call_expert)
    course.certificates.append(route.certificate())
    return course


def _spaced(rounds: int) -> Iterator[int]:
    return (int(step) for step in np.linspace(1, rounds, min(rounds, POINTS)))


def draw_course(course: Course, truth: Truth | None, title: str) -> "Figure":
    """Threshold, expert calls and loss over the rounds.

    Parameters
    ----------
    course: from the journal.
    truth: what was really lost, where that was found out.
    title: what was asked of whom.
    """
    figure = new_figure(11.0, 3.6)
    threshold, calls, loss = figure.subplots(1, 3)
    steps = np.arange(1, len(course.calls) + 1)
    blue, limit = COLOURS["portfolio"], COLOURS["limit"]
    threshold.plot(steps, course.thresholds, color=blue, linewidth=1.6)
    calls.plot(steps, 100.0 * np.cumsum(course.calls) / steps, color=blue, linewidth=1.6)
    at = [certificate.rounds for certificate in course.certificates]
    most = [100.0 * certificate.average_upper for certificate in course.certificates]
    loss.plot(at, most, color=blue, linewidth=1.2, label="certified: at most\n(open rounds count as loss 1)")
    if truth is not None:
        known = [truth.losses[step] for step in sorted(truth.losses)]
        served = 100.0 * np.cumsum(known) / np.arange(1, len(known) + 1)
        loss.plot(sorted(truth.losses), served, color="black", linestyle="--", label="really served")
    loss.axhline(100.0 * course.epsilon, color=limit, linewidth=1.0, label=f"limit ε = {course.epsilon:g}")
    loss.legend(frameon=False)
    label(threshold, "Threshold", 0.0, 1.15 * max([*course.thresholds, 0.01]))
    label(calls, "Expert calls so far (%)", 0.0, 105.0)
    label(loss, "Loss a round so far (%)", 0.0, 400.0 * course.epsilon)
    figure.suptitle(title)
    return figure
