"""Warm starts: history that a router learns from before its first decision."""

from collections.abc import Iterable, Mapping
from itertools import chain

from bpac.arguments import fraction
from bpac.errors import InputError
from bpac.routing.dithering import of_other_width
from bpac.routing.journal.entries import Entry, Labelled
from bpac.routing.journal.past_game import labelled_rows
from bpac.routing.journal.rebuild import opened
from bpac.routing.route import Route
from bpac.routing.router.parts import RouterParts
from bpac.routing.router.proposals import all_scores

# Score (or scores by name) and loss of a draft.
LabelledRow = tuple[float | Mapping[str, float], float]


def rows_of_table(route: Route, rows: Iterable[LabelledRow]) -> list[Labelled]:
    """Labelled drafts as history; ``InputError`` if one is out of range.

    Parameters
    ----------
    route: the route that they are for.
    rows: score and loss of each draft.
    """
    _refuse_cascades(route)
    several = bool(route.score_names)
    return [
        Labelled(all_scores(route, score) if several else (fraction(score, "uncertainty"),), fraction(loss, "loss"))
        for score, loss in rows
    ]


def rows_of_game(route: Route, entries: Iterable[Entry]) -> list[Labelled]:
    """The last epoch of an older game as history; ``InputError`` if it does not fit the route.

    Parameters
    ----------
    route: the route that they are for.
    entries: the whole journal of the older game.
    """
    _refuse_cascades(route)
    floor, scores = route.terms.floor, max(1, len(route.score_names))
    rows = labelled_rows(entries, floor or 1.0, scores)
    for row in rows:
        if len(row.uncertainties) != scores:
            raise InputError(f"that game has {len(row.uncertainties)} scores, and this router has {scores}")
        if row.least_propensity < floor:
            raise InputError(
                f"that game called the expert with a probability of {row.least_propensity:g}, and this router "
                f"never goes below {floor:g}: give it an exploration with a lower floor, or feed a table of that "
                "game (bpac export --format table)"
            )
    return rows


def _refuse_cascades(route: Route) -> None:
    if route.stages:
        raise InputError("history is for routers of two models, and this is a cascade: start it without history")


class WarmStarts(RouterParts):
    """The part of a router that is about history."""

    def warm_start(self, rows: Iterable[LabelledRow]) -> None:
        """Feed labelled history: ``(uncertainty, loss)`` for every row, before the first decision.

        It counts like rounds in which every query went to the expert. The promise then assumes
        that history and traffic come from the same distribution.

        Parameters
        ----------
        rows: score (with several scores, one for each name) and loss of each draft.
        """
        with self._lock.change():
            self._learn(self._dithered(rows_of_table(self._route, rows), 0.0))

    def warm_start_from(self, entries: Iterable[Entry]) -> None:
        """Feed the whole journal of an older game, round by round as it was decided, before the first decision.

        Drafts that were kept belong to it; audited rounds alone are harder than the traffic (MATH section 3). Of a game
        with several epochs the last one counts. The promise then assumes that it and the traffic have the same
        distribution.

        Parameters
        ----------
        entries: the journal from its first entry on, for example what ``read_journal`` gives.
        """
        with self._lock.change():
            remaining = iter(entries)
            first = next(remaining, None)
            width = opened(first).dither
            rows = rows_of_game(self._route, chain([first] if first else [], remaining))
            self._learn(self._dithered(rows, width))

    def _dithered(self, rows: list[Labelled], width: float) -> list[Labelled]:
        """The rows as this game would have recorded them; their scores were dithered by that width before.

        Scores that are not dithered like those of the traffic would say that losses lie higher than they do.
        """
        dither, first_step = self._route.dither, -self._route.labelled - len(rows)
        if not dither:
            return rows
        draws = map(self._proposals.dither, range(first_step, first_step + len(rows)))
        return [
            row._replace(uncertainties=tuple(of_other_width(score, width, dither, draw) for score in row.uncertainties))
            for row, draw in zip(rows, draws, strict=True)
        ]

    def _learn(self, rows: list[Labelled]) -> None:
        if self._route.step:
            raise InputError(
                f"history comes before the first decision, and {self._route.step} were made: start a new router"
            )
        self._proposals.latest = None
        for row in rows:
            self._write(row)
            self._route.learned(row)
