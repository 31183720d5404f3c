"""What keeps a game from routing, or its score from being of use: what it is, what it costs, and what to do."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bpac.dashboard.history.history import History
from bpac.dashboard.history.unscored import UnscoredReport
from bpac.dashboard.remedies import UNSCORED, remedies_of
from bpac.dashboard.troubles import REFUSALS_COST, counted_reasons, much_refused, refusal_remedies

# How the state of a game is called in which no request is a round.
NOT_ROUTING = "not routing: no draft could be scored"


class GameTrouble(NamedTuple):
    """Something that an operator should repair.

    Parameters
    ----------
    what: what happened, in one sentence without a full stop.
    cost: what it costs.
    remedy: what to do.
    """

    what: str
    cost: str
    remedy: str

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return self._asdict()


def no_draft_scored(unscored: UnscoredReport) -> GameTrouble:
    """The trouble of a game whose latest requests all had no score.

    >>> trouble = no_draft_scored(UnscoredReport(40, 0.5, {"draft-failed": 10, "no-score": 30}))
    >>> trouble.what, trouble.cost
    ('not routing: no draft could be scored (30 × no-score, 10 × draft-failed)', 'the expert answered 50.0% of all requests because of it')
    """  # noqa: E501
    reasons = sorted(unscored.reasons, key=lambda reason: (-unscored.reasons[reason], reason))
    causes = ", ".join(f"{unscored.reasons[reason]:,} × {reason}" for reason in reasons)
    remedy = "; ".join(remedies_of(reasons, UNSCORED).values())
    cost = f"the expert answered {unscored.share:.1%} of all requests because of it"
    return GameTrouble(f"{NOT_ROUTING} ({causes})", cost, remedy)


def refused_by_expert(history: History) -> GameTrouble | None:
    """The trouble of a game whose expert refused many of the latest requests; none if it did not."""
    if not much_refused(history):
        return None
    reasons, share = history.refusals.reasons, history.refusals.recent
    what = f"the expert refused {share:.0%} of the latest requests sent to it{counted_reasons(reasons)}"
    return GameTrouble(what, REFUSALS_COST, refusal_remedies(reasons))


def never_opens() -> GameTrouble:
    """The trouble of a game whose policy accepts no draft."""
    return GameTrouble(
        "not routing: the policy of this route accepts no draft",
        "the expert answers every request, and drafts are generated in addition",
        'choose another policy (default: "portfolio")',
    )


def troubles_of(
    not_routing: bool, only_unscored: bool, unscored: UnscoredReport, *more: GameTrouble | None
) -> Sequence[GameTrouble]:
    """The troubles of a game.

    Parameters
    ----------
    not_routing: whether its state is ``not_routing``.
    only_unscored: whether that is because no draft could be scored.
    unscored: its requests without a score.
    more: further troubles; none is left out.
    """
    found = [no_draft_scored(unscored) if only_unscored else never_opens()] if not_routing else []
    return tuple(found + [trouble for trouble in more if trouble is not None])
