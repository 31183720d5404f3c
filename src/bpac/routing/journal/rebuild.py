"""From journal entries to the state of a route. Entries that no router can have written are refused."""

import math
import re
from collections.abc import Iterable

from bpac.arguments import fraction
from bpac.errors import InputError, JournalError
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.cascade.outcome import checked_outcome
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import StageOutcomes
from bpac.routing.cascade.rules import JoiningRule, rule_from_json
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import (
    Committed,
    Entry,
    Expected,
    Fitted,
    Labelled,
    Learned,
    Opened,
    Overdue,
    Resolved,
    Started,
    Stopped,
    Withdrawn,
)
from bpac.routing.learning.features import checked_features
from bpac.routing.learning.model import FrozenModel, frozen
from bpac.routing.route import Route
from bpac.routing.rule import decide_again
from bpac.routing.settings import Settings


def opened(entry: Entry | None) -> Route:
    """The empty route that the first entry of a journal opens."""
    if not isinstance(entry, Opened):
        raise JournalError(f"entry 1 must be the opened entry with the settings, got {entry!r}")
    try:
        return Route(Settings.from_json(entry.settings))
    except InputError as error:
        raise JournalError(f"entry 1 has settings that cannot be used: {error}") from error


def follow(route: Route, entries: Iterable[Entry]) -> None:  # noqa: PLR0912  # one branch for each kind of entry
    """Apply entries to a route.

    Parameters
    ----------
    route: the state after all earlier entries.
    entries: what comes next in the journal.
    """
    for number, entry in enumerate(entries, start=route.entries + 1):
        match entry:
            case Decision():
                _check_decided(route, entry, number)
                route.charge()
                route.decided(entry)
            case Resolved():
                _resolve(route, entry, number)
            case Labelled():
                _check_labelled(route, entry, number)
                route.learned(entry)
            case Started():
                route.started()
            case Stopped():
                _check_stopped(route, number)
                route.stopped()
            case Withdrawn():
                _check_open(route, entry.ticket, number)
                route.withdrawn(entry.ticket)
            case Overdue():
                _check_open(route, entry.ticket, number)
                route.overdue(entry.ticket)
            case Committed():
                _check_committed(route, entry, number)
                route.committed()
            case Learned():
                _check_learned(route, entry, number)
                route.joined(entry)
            case Fitted():
                route.fitted(_fitted_rule(route, entry, number))
            case Expected():
                _check_expected(entry, number)
                route.expects(entry)
            case _:
                raise JournalError(f"entry {number} is {entry!r}: only the first entry opens a journal")


def _resolve(route: Route, entry: Resolved, number: int) -> None:
    decision = route.find(entry.step)
    if decision is None:
        known = "has no open outcome" if 1 <= entry.step <= route.step else "was never decided"
        raise JournalError(f"entry {number} resolves step {entry.step}, which {known}: an entry is missing or repeated")
    if entry.loss is not None:
        entry = entry._replace(loss=_checked(entry.loss, "loss", number))
        if route.stages:
            entry = entry._replace(stages=_checked_stages(route, decision, entry, number))
        elif entry.stages is not None:
            raise JournalError(f"entry {number} reports several models, and this router has a pair")
    elif not entry.refused and entry.step in route.given_up:
        raise JournalError(f"entry {number} gives step {entry.step} up a second time: an entry is repeated")
    route.settle(decision, entry)


def _checked_stages(route: Route, decision: Decision, entry: Resolved, number: int) -> StageOutcomes:
    policy = route.settings.policy
    if entry.stages is None or not isinstance(policy, Cascade):
        raise JournalError(f"entry {number} lacks the outcomes of the models of a cascade: restore it from a copy")
    try:
        return checked_outcome(decision, *entry.stages, policy)
    except InputError as error:
        raise JournalError(f"entry {number}: {error}") from error


def _check_open(route: Route, ticket: int, number: int) -> None:
    """Refuse a ticket that is done already, or of a time in which none were given out."""
    arrivals = route.by_arrival.arrivals if route.by_arrival is not None else None
    if not route.running or ticket < 1 or (arrivals is not None and not arrivals.is_open(ticket)):
        raise JournalError(f"entry {number} names ticket {ticket}, which is not under way: an entry is missing")


def _check_stopped(route: Route, number: int) -> None:
    held = route.by_arrival.arrivals.held if route.by_arrival is not None else {}
    if not route.running or held:
        raise JournalError(f"entry {number} says that no query is under way, but one is: an entry is missing")


def _check_labelled(route: Route, row: Labelled, number: int) -> None:
    if route.stages:
        raise JournalError(f"entry {number} is history, which a cascade does not have")
    if route.step:
        raise JournalError(
            f"entry {number} is history after step {route.step}: history comes before the first decision"
        )
    if len(row.uncertainties) != max(1, len(route.score_names)):
        raise JournalError(f"entry {number} has {len(row.uncertainties)} scores, not one for each")
    for score in row.uncertainties:
        _checked(score, "uncertainty", number)
    if row.loss is not None:
        _checked(row.loss, "loss", number)
    least, propensity = row.least_propensity, row.propensity
    kept = row.loss is None and not row.refused
    if not route.terms.floor <= least <= propensity <= 1.0 or (kept and propensity == 1.0):
        raise JournalError(f"entry {number} contradicts itself or the settings: {row!r}")


def _check_committed(route: Route, entry: Committed, number: int) -> None:
    if entry.first_step != route.step + 1:
        raise JournalError(
            f"entry {number} commits to coins from step {entry.first_step} on after step {route.step}: "
            "an entry is missing or repeated"
        )
    if not re.fullmatch("[0-9a-f]{64}", entry.digest):
        raise JournalError(f"entry {number}: digest must be 64 hexadecimal digits, got {entry.digest!r}")


def _check_expected(entry: Expected, number: int) -> None:
    if not 0.0 < entry.audit_price < math.inf or entry.rounds < 0:
        raise JournalError(f"entry {number} contradicts itself: {entry!r}")


def _check_learned(route: Route, entry: Learned, number: int) -> None:
    learning = route.learning
    if learning is None:
        raise JournalError(f"entry {number} is a learned score, and the settings say that none is learned")
    if entry.score != len(learning.joined) + 1 or not learning.wants_more:
        raise JournalError(f"entry {number} is learned score {entry.score}: an entry is missing or repeated")
    try:
        model = frozen(entry.model)
    except InputError as error:
        raise JournalError(f"entry {number}: {error}") from error
    if isinstance(model, FrozenModel) and model.features != len(route.feature_names) + 1:
        raise JournalError(f"entry {number} has a model of {model.features} values: the settings name other features")
    numbered = entry.tickets >= 0 if route.running else entry.tickets == 0
    if entry.rounds < 0 or not 0.0 <= entry.gain < math.inf or not numbered:
        raise JournalError(f"entry {number} contradicts itself or the settings: {entry!r}")


def _check_decided(route: Route, decision: Decision, number: int) -> None:
    if decision.step != route.step + 1:
        missing = "a decision is missing" if decision.step > route.step else "a decision is repeated"
        raise JournalError(f"entry {number} decides step {decision.step} after step {route.step}: {missing}")
    for name, value in zip(Decision._fields[1:5], decision[1:5], strict=True):
        if type(value) is not float or not 0.0 <= value <= 1.0:
            _checked(value, name, number)
    for score in decision.uncertainties:
        _checked(score, "uncertainty", number)
    # The rate is not recorded, and matters for an accepted draft only: there it is the propensity.
    by_rule = decide_again(
        decision,
        threshold=decision.threshold,
        rate=decision.propensity,
        shadow=route.shadow,
        certain_while_closed=route.certain_while_closed,
    )
    if (
        decision.least_propensity < route.terms.floor
        or decision.propensity < decision.least_propensity
        or decision.propensity != by_rule.propensity
        or decision.call_expert != by_rule.call_expert
        or decision.serve_draft != by_rule.serve_draft
        or not 1 <= decision.epoch <= route.epoch
        or (decision.epoch != route.epoch and not decision.ticket)
        or not (_has_all_scores(route, decision) or route.stages)
    ):
        raise JournalError(f"entry {number} contradicts itself or the settings: {decision!r}")
    if route.stages or decision.cascade is not None:
        _check_stages(route, decision, number)
    if decision.epoch != route.epoch:
        return
    if decision.ticket:
        _check_open(route, decision.ticket, number)
    elif route.running:
        raise JournalError(f"entry {number} decides step {decision.step} without a ticket: other queries have one")


def _has_all_scores(route: Route, decision: Decision) -> bool:
    """Whether a decision has the scores and features that its query must have."""
    scores = decision.uncertainties
    if route.learning is None:
        return len(scores) == len(route.score_names) and not decision.features
    # One of several gateways may decide a query of an earlier epoch before it knows that the epoch is over.
    count = route.current.scores_at(decision.ticket) if decision.epoch == route.epoch else max(1, len(scores))
    try:
        known = checked_features(decision.features, route.feature_names)
    except InputError:
        return False
    return len(scores) == count and decision.uncertainty in scores and known == decision.features


def _check_stages(route: Route, decision: Decision, number: int) -> None:
    part, bettor = decision.cascade, route.bettor
    if (
        part is None
        or not isinstance(bettor, CascadeBettor)
        or len(part.answers) != route.stages - 1
        or part.outcome is not None
        or not 1 <= part.stage <= route.stages
        or (part.stage < route.stages) != (decision.uncertainty < decision.threshold)
        or (part.full and not decision.call_expert)
    ):
        raise JournalError(f"entry {number} contradicts itself or the settings: {decision!r}")
    if decision.epoch != route.epoch:
        return
    # Without a ticket, it is not recorded whether a rule joined while the models were being asked.
    known = bettor.rules_known_at(decision.seen) if decision.ticket else len(decision.uncertainties)
    accepted = part.stage < route.stages
    if (
        len(decision.uncertainties) != known
        or not bettor.rules_known_at(0) <= known <= len(bettor.rules)
        or not 0 <= part.rule < known
        or not decision.least_propensity <= part.full_propensity <= 1.0
        or (accepted and (part.full_propensity != decision.propensity or part.full != decision.call_expert))
    ):
        raise JournalError(f"entry {number} contradicts itself or the settings: {decision!r}")


def _fitted_rule(route: Route, entry: Fitted, number: int) -> JoiningRule:
    bettor = route.bettor
    if not isinstance(bettor, CascadeBettor) or not bettor.fit_due:
        raise JournalError(f"entry {number} fits a rule where none is due: an entry is missing or repeated")
    try:
        rule = rule_from_json(entry.rule)
    except InputError as error:
        raise JournalError(f"entry {number}: {error}") from error
    if rule.stages[-1] >= route.stages:
        raise JournalError(
            f"entry {number} has a rule for {rule.stages[-1]} models before the last, and there are fewer"
        )
    return rule


def _checked(value: object, name: str, number: int) -> float:
    try:
        return fraction(value, name)
    except InputError as error:
        raise JournalError(f"entry {number}: {error}") from error
