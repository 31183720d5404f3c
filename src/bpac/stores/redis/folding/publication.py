"""What the folder of a game publishes, as the values that ``lua/publish.lua`` takes."""

from dataclasses import asdict
from typing import NamedTuple

from msgspec import msgpack

from bpac.stores.encoding import encode
from bpac.stores.redis.folding.fold import Fold, FoldedState
from bpac.stores.redis.journal import Position


class Publication(NamedTuple):
    """Entries of a journal, and what is in force after them.

    Parameters
    ----------
    packed: the arguments of the script.
    position: how far the journal is after it.
    """

    packed: bytes
    position: Position


def publication(fold: Fold, before: Position, folded: str, upto: str, *, snapshot: bool) -> Publication:
    """What is to be published.

    Parameters
    ----------
    fold: the entries that are made, and the state after them.
    before: how far the journal is.
    folded, upto: the last event that was folded before, and the last one that is folded now.
    snapshot: whether to publish a snapshot, with a claim for auditors.
    """
    position, now = Position(before.entries + len(fold.pending), fold.head), fold.in_force()
    text = claim = None
    if snapshot:
        text = encode({"entries": position.entries, "head": fold.head.hex(), "state": fold.state.snapshot()})
        claim = _claim(fold.state, position)
    route = fold.state.route
    values = (
        *(folded, before.entries, upto, fold.pending, fold.head.hex(), fold.generation),
        *(route.epoch, now.key, now.terms, now.models_version, now.models),
        *(text or False, claim or False, route.step),
        *(fold.room() or False, *fold.counted),
    )
    return Publication(msgpack.encode(values), position)


def _claim(state: FoldedState, position: Position) -> str:
    """What is claimed about a game, for auditors."""
    route = state.route
    certificate = asdict(route.certificate())
    values = {"step": route.step, "threshold": route.bettor.threshold, "certificate": certificate}
    return encode({"entries": position.entries, "head": position.head.hex(), "values": values})
