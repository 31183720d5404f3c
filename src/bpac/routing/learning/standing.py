"""Where each score of a router stands."""

from typing import NamedTuple

from bpac.routing.bettors import Candidates
from bpac.routing.learning.model import OwnScore
from bpac.routing.route import Route


class ScoreStanding(NamedTuple):
    """A score that competes.

    Parameters
    ----------
    score: its index; 0 is the score that was there first.
    share: its share of α; 0 for a score that was not worth any, which does not bet.
    threshold: its certified threshold; 0 while none is.
    accepted: share of the latest traffic that the threshold accepts.
    in_force: whether it decides.
    since_step: how many decisions had been made when it joined.
    rounds: how many audits it was fitted to; none for the score that was there first.
    estimated_gain: how much more traffic it could accept than the first, as estimated then; none for the first.
    shared: whether it was fitted to audits of other games, too.
    retired: whether it has stopped betting, because it had nothing left to gain.
    """

    score: int
    share: float
    threshold: float
    accepted: float
    in_force: bool
    since_step: int = 0
    rounds: int | None = None
    estimated_gain: float | None = None
    shared: bool = False
    retired: bool = False


def standings(route: Route) -> tuple[ScoreStanding, ...]:
    """The scores that compete in the current epoch; none where no score is learned."""
    bettor, learning = route.bettor, route.learning
    if learning is None or not isinstance(bettor, Candidates):
        return ()
    shares = [learning.settings.share(score) for score in range(1 + len(learning.joined))]
    for score, (model, *_) in enumerate(learning.joined, start=1):
        if isinstance(model, OwnScore):  # what was kept for it went back to the first
            shares[0] += learning.settings.own_share * learning.settings.returned(score)
            shares[score] = 0.0
    found = []
    for score, (wealth, accepted) in enumerate(zip(bettor.wealths, bettor.accepted, strict=True)):
        standing = ScoreStanding(score, shares[score], wealth.threshold, accepted, score == bettor.active)
        standing = standing._replace(retired=score in bettor.absent and shares[score] > 0.0)
        if score:
            _, rounds, gain, step, shared = learning.joined[score - 1]
            standing = standing._replace(since_step=step, rounds=rounds, estimated_gain=gain, shared=shared)
        found.append(standing)
    return tuple(found)
