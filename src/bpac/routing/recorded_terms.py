"""Decisions on recorded terms: what a router decides, computed by a program that has no state of the game.

Several gateways that share a game decide with these functions, and so does the one that writes the journal:

1. A draft is scored when it is complete (``draft_scores``): its score is dithered, and the learned scores are computed
   that its query has. These numbers are recorded as they are; nobody computes them a second time.
2. The decision follows from the recorded scores, the ticket, the step and the coin of the step (``decide_on_terms``).
   Numbers are only compared there, so that every machine decides the same to the bit.
3. In a cascade the walk through the models takes the place of the scores (``cascade/recorded_walks.py``).
4. If a drift alarm has rung since the query arrived, nothing that was certified before is used (``closed``). A gateway
   that does not know of the alarm yet decides on the terms of the ticket: a stale threshold is allowed (MATH 12).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bpac.arguments import fraction
from bpac.errors import InputError
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.recorded_walks import RecordedWalk, decide_walk
from bpac.routing.decision import Decision
from bpac.routing.dithering import dithered
from bpac.routing.learning.features import Feature, Features, checked_features
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.policies import Budget, Fixed, Portfolio
from bpac.routing.rule import decide_query
from bpac.routing.settings import Settings
from bpac.routing.tickets.ticket import Ticket


class DecisionRules(NamedTuple):
    """What decisions depend on beside their ticket, their draft and their coin; it stays the same in a game.

    Parameters
    ----------
    shadow: whether audits run behind the draft, which is served at once.
    certain_while_closed: whether the policy knows that every query goes to the expert while the threshold is 0.
    dither: by how much scores are lowered at random at most, relative to themselves.
    score_names: the names of the scores, where there are several.
    feature_names: what scores are learned from; empty if none are learned.
    learns: whether scores are learned.
    cascade: the policy of a cascade (default: none, there are two models).
    budget: whether drafts may be kept only while a budget has room, which is counted where steps are (default: false).
    """

    shadow: bool
    certain_while_closed: bool
    dither: float
    score_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    learns: bool
    cascade: Cascade | None = None
    budget: bool = False

    @classmethod
    def of(cls, settings: Settings) -> "DecisionRules":
        """The rules of a game; ``InputError`` if its decisions need its state.

        >>> from bpac import Router
        >>> DecisionRules.of(Router(epsilon=0.05).settings).learns
        False
        """
        policy = settings.policy
        # The bound must move with audits only, so that whoever counts them knows it.
        budget = isinstance(policy, Budget) and settings.certificate == "plain"
        # A threshold that is set by hand does not depend on the state at all.
        if not policy.in_order and not budget and not isinstance(policy, Fixed):
            raise InputError(
                f"{type(policy).__name__} decides on the newest state of its game, which several gateways do not have"
            )
        learned = policy.learned
        return cls(
            settings.explore == "shadow",
            policy.certain_while_closed,
            policy.dither if isinstance(policy, Portfolio) else 0.0,
            policy.score_names,
            learned.features if learned is not None else (),
            learned is not None,
            policy if isinstance(policy, Cascade) else None,
            budget,
        )


class RecordedScores(NamedTuple):
    """The scores of a draft as they are recorded.

    Parameters
    ----------
    uncertainties: the score that was there first, then the learned ones; or one for each name.
    features: what was known of the draft beside its score, where scores are learned from it.
    """

    uncertainties: tuple[float, ...]
    features: tuple[Feature, ...] = ()


def draft_scores(
    rules: DecisionRules,
    uncertainty: float | Mapping[str, float],
    dither: float,
    models: Sequence[FrozenModel | OwnScore] = (),
    features: Features | None = None,
) -> RecordedScores:
    """The scores of a draft.

    Parameters
    ----------
    rules: of the game.
    uncertainty: score of the draft in [0, 1]; with several scores, one for each name.
    dither: a uniform draw in [0, 1), independent of the coin of the query.
    models: the learned scores that the query has: those that had joined when it arrived.
    features: what is known of the draft beside its score, where scores are learned.
    """
    if rules.score_names:
        if not isinstance(uncertainty, Mapping) or set(uncertainty) != set(rules.score_names):
            raise InputError(f"this game needs a score for each of {', '.join(rules.score_names)}, got {uncertainty!r}")
        own = tuple(fraction(uncertainty[name], name) for name in rules.score_names)
    else:
        own = (fraction(uncertainty, "uncertainty"),)
    if rules.dither:
        own = tuple(dithered(score, rules.dither, dither) for score in own)
    if not rules.learns and features is None:
        return RecordedScores(own)
    known = checked_features(features, rules.feature_names)
    values = (own[0], *known)
    return RecordedScores((*own, *[model.score(values) for model in models]), known)


def closed(rules: DecisionRules, ticket: Ticket) -> Ticket:
    """The terms of a query that is decided after a drift alarm has rung since its arrival."""
    return ticket._replace(threshold=0.0, rate=1.0, score=0 if rules.learns else ticket.score)


def decide_on_terms(
    rules: DecisionRules,
    ticket: Ticket,
    draft: RecordedScores | RecordedWalk,
    step: int,
    draw: float,
    *,
    stale: bool = False,
) -> Decision:
    """The decision of a query.

    Parameters
    ----------
    rules: of the game.
    ticket: the terms with which it arrived.
    draft: the scores of its draft; in a cascade, its walk.
    step: its place among the decisions of the game.
    draw: the coin of that step.
    stale: whether a drift alarm has rung since it arrived, or its budget has no room (default: false).
    """
    if stale:
        ticket = closed(rules, ticket)
    if isinstance(draft, RecordedWalk):
        walk = draft._replace(levels=()) if stale else draft
        return decide_walk(ticket, walk, step, draw, len(walk.answers) + 1, shadow=rules.shadow)
    number, epoch, threshold, rate, score, seen = ticket
    uncertainties = draft.uncertainties
    several = rules.learns or bool(rules.score_names)
    return decide_query(
        step,
        uncertainties[score],
        threshold,
        rate,
        draw,
        rules.shadow,
        rules.certain_while_closed,
        epoch,
        uncertainties if several else (),
        number,
        seen,
        draft.features,
    )
