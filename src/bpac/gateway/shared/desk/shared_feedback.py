"""Outcomes of the rounds of a shared game that are reported from outside, at any of its gateways."""

import asyncio
from typing import TYPE_CHECKING

from bpac.errors import AlreadyResolved, NotAudited
from bpac.gateway.games.rounds.reported import CALLER_GAVE_UP, Reported
from bpac.gateway.http.bad_request import not_in_journal_yet
from bpac.stores.redis.messages import resolving

if TYPE_CHECKING:
    from bpac.gateway.shared.shared_game import SharedGame


async def record(game: "SharedGame", step: int, reported: Reported) -> None:
    """Record what is reported; ``ObservationError`` or ``InputError`` if it does not fit.

    Parameters
    ----------
    game: the game.
    step: the round.
    reported: its outcome.
    """
    reported.check(game.route)
    desk = game.desk
    if reported.loss is not None:
        desk.check_loss(reported.loss)
    if reported.refused or not desk.waits_for(step):
        await game.refresh()
    found = game.state.route.find(step)
    if found is None and not desk.waits_for(step):
        await _check_open(game, step)
    note = {**desk.closed(step), **reported.noted}
    # An accepted draft may be served where the expert refused; what is not in the journal yet counts as accepted.
    served = reported.refused and (found is None or found.uncertainty < found.threshold)
    cause = "" if reported.loss is not None or reported.refused else CALLER_GAVE_UP
    outcome = resolving(step, reported.loss, note, cause=cause, draft_served=served, refused=reported.refused)
    await game.side.told(outcome)


async def _check_open(game: "SharedGame", step: int) -> None:
    """Raise an error that says why a round takes no outcome, unless another gateway may have just decided it."""
    decision = await asyncio.to_thread(game.store.decision, game.kept, step)
    decided = game.state.route.step
    if decision is None and step > decided:
        raise not_in_journal_yet()
    if decision is None:  # its id was served, so it was decided; and it is not open
        raise AlreadyResolved(f"step {step} is archived, so its outcome is final")
    if not decision.call_expert:
        raise NotAudited(f"the draft of step {step} was kept: its loss is never seen and must not be reported")
    if step <= decided:  # otherwise this gateway has not read the decision of another one yet
        raise AlreadyResolved(f"step {step} already has an outcome")
