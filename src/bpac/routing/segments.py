"""Segments: one router for each kind of traffic, each with its own promise."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Literal

from bpac.arguments import one_of, open_fraction, whole
from bpac.errors import InputError
from bpac.routing.learning.shared_scores import SharedScores
from bpac.routing.lock import RouterLock
from bpac.routing.router import Router

# Segments beyond the limit share this one.
OTHERS = "*"


def place_of(segment: str, known: Collection[str], most: int) -> str:
    """The segment itself if it has a router or may get one, else that of all segments beyond the limit.

    Parameters
    ----------
    segment: its name.
    known: the segments that have a router.
    most: how many routers there may be.

    >>> place_of("law", ["maths"], most=3), place_of("cooking", ["maths", "law"], most=3)
    ('law', '*')
    """
    return OTHERS if segment not in known and len(set(known) - {OTHERS}) >= most - 1 else segment


def alpha_of_each(alpha: float, alpha_scope: Literal["each", "all"], most: int) -> float:
    """The alpha of one segment: that of ``each``, or an equal share of what ``all`` have together."""
    return alpha / (most if alpha_scope == "all" else 1)


class Segments(Mapping[str, Router]):
    """Routers by segment, started as segments appear, limited in number (MATH section 8).

    Parameters
    ----------
    start: makes the router of a segment, given its name and its alpha.
    alpha: chance that the promise fails (α).
    alpha_scope: whether ``each`` segment has it (default), or ``all`` together, who then share it equally.
    most: how many routers there may be; the last one is shared by all further segments.
    shared: scores that the segments learn together (default: each learns its own, if its policy does). Wealth is never
        shared, so each segment keeps its own promise.

    >>> segments = Segments(lambda name, alpha: Router(0.05, alpha), alpha=0.1, most=2)
    >>> segments.router("maths") is segments.router("maths")
    True
    >>> segments.router("law") is segments.router("cooking")        # both beyond the limit
    True
    """

    def __init__(
        self,
        start: Callable[[str, float], Router],
        alpha: float,
        *,
        alpha_scope: Literal["each", "all"] = "each",
        most: int = 100,
        shared: SharedScores | None = None,
    ) -> None:
        one_of(alpha_scope, "alpha_scope", ("each", "all"))
        self._most = whole(most, "most", 1)
        self._alpha = alpha_of_each(open_fraction(alpha, "alpha"), alpha_scope, most)
        self._start = start
        self._shared = shared
        self._lock = RouterLock()
        self._routers: dict[str, Router] = {}

    def router(self, segment: str) -> Router:
        """The router of a segment; a new one if it is the first of its kind and there is room."""
        if not isinstance(segment, str):
            raise InputError(f"a segment is named by a string, got {segment!r}")
        with self._lock:
            segment = place_of(segment, self._routers, self._most)
            if segment not in self._routers:
                router = self._start(segment, self._alpha)
                if self._shared is not None:
                    router.share_scores(self._shared)
                self._routers[segment] = router
            return self._routers[segment]

    def __getitem__(self, segment: str) -> Router:
        return self._routers[segment]

    def __iter__(self) -> Iterator[str]:
        return iter(self._routers)

    def __len__(self) -> int:
        return len(self._routers)
