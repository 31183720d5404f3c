"""Outcomes of the rounds in which the expert was called: recorded when they come, forfeited when they do not."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bpac.dashboard.history.refusals import NOTED, RefusalReason
from bpac.errors import AlreadyResolved, InputError, ObservationError
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.journal import GameJournal, now
from bpac.gateway.games.rounds.decision_ids import decision_id
from bpac.gateway.games.rounds.open_rounds import OpenRounds
from bpac.gateway.games.rounds.reported import CALLER_GAVE_UP, Reported
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved

log = logging.getLogger("bpac.gateway")

# Causes of a forfeit.
EXPERT_FAILED = "expert failed"
DRAFT_FAILED = "draft failed"
DRAFT_CANCELLED = "draft cancelled"
GRADER_FAILED = "grader failed"
DEADLINE = "deadline"
RESTART = "restart"


class OpenOutcomes:
    """The open rounds of a game, and the outcomes that close them.

    Each outcome is proposed by the router, written to the journal with a note, and then applied.

    Parameters
    ----------
    journal: the journal of the game.
    route: the settings of the route.
    """

    def __init__(self, journal: GameJournal, route: RouteSettings) -> None:
        self._journal = journal
        self._router = journal.router
        self._route = route
        self._open = OpenRounds()

    def __len__(self) -> int:
        return len(self._open)

    def go_on_under(self, route: RouteSettings) -> None:
        """Use other settings of the route from now on."""
        self._route = route

    @property
    def external(self) -> bool:
        """Whether losses are reported from outside (``loss = "external"``)."""
        return bool(self._route.loss["name"] == "external")

    def wait_for(self, decision: Decision) -> None:
        """Wait for the outcome of a round until its deadline."""
        self._open.wait_for(decision, self._route)

    def extend(self, decision: Decision) -> None:
        """Wait longer for the outcome of an episode that goes on, where it is reported from outside at its end."""
        if self.external:
            self._open.extend(decision, self._route)

    def resolve(self, decision: Decision, loss: float | None, note: dict[str, Any], cause: str = GRADER_FAILED) -> None:
        """Record the loss of a draft, or forfeit the round if there is none; a round with an outcome keeps it.

        Parameters
        ----------
        decision: what was decided.
        loss: the loss of the draft; none, or no number in [0, 1], if it is not known.
        note: counts of tokens, for the journal.
        cause: why the loss is not known.
        """
        self._open.close(decision.step)
        try:
            entry = self._proposed(decision, loss, cause)
        except AlreadyResolved:
            # Its deadline has passed, or ``max_owed`` later rounds were open; its tokens were generated all the same.
            step = decision.step
            log.info("outcome too late", extra={"decision": decision_id(self._journal.store, self._journal.game, step)})
            self._journal.savings.outcome_unused(note)
            return
        self._record(decision, entry, note)

    def resolve_stages(
        self,
        decision: Decision,
        answers: Sequence[StageAnswer],
        losses: Sequence[float | None],
        note: dict[str, Any],
    ) -> None:
        """Record what an audit of a cascade found; a round with an outcome keeps it.

        Parameters
        ----------
        decision: what was decided.
        answers, losses: of all models but the last, as ``CascadeRouter.observe_stages`` takes them.
        note: counts of tokens, for the journal.
        """
        self._open.close(decision.step)
        router = self._router
        if not isinstance(router, CascadeRouter):
            raise TypeError("only a cascade has the losses of several models")
        try:
            entry = router.propose_stages(decision, answers, losses)
        except AlreadyResolved:
            self._journal.savings.outcome_unused(note)
            return
        self._record(decision, entry, note)

    def _proposed(self, decision: Decision, loss: float | None, cause: str) -> Resolved:
        if loss is not None:
            with suppress(InputError):  # a grader that returns NaN has not found a loss
                return self._router.propose_outcome(decision, loss)
        return self._router.propose_forfeit(decision, cause)

    def forfeit(self, decision: Decision, cause: str, *, draft_served: bool = False) -> bool:
        """Forfeit a round: loss 1; false, and nothing is recorded, if it has an outcome already.

        Parameters
        ----------
        decision: what was decided.
        cause: why its outcome does not come.
        draft_served: whether the caller gets the draft instead of the expert's answer.
        """
        note = self._open.close(decision.step)
        try:
            entry = self._router.propose_forfeit(decision, cause, draft_served=draft_served)
        except AlreadyResolved:
            return False
        self._record(decision, entry, note)
        return True

    def refuse(self, decision: Decision, reason: RefusalReason, *, draft_served: bool) -> bool:
        """Record that the expert refused to answer; false, and nothing is recorded, if the round has an outcome.

        Parameters
        ----------
        decision: what was decided.
        reason: why it refused, for the journal; nothing that its server wrote.
        draft_served: whether the caller gets the draft instead of the expert's answer.
        """
        note = self._open.close(decision.step) | {NOTED: str(reason)}
        try:
            entry = self._router.propose_refusal(decision, draft_served=draft_served)
        except AlreadyResolved:
            return False
        self._record(decision, entry, note)
        return True

    def await_feedback(self, decision: Decision, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Keep what is needed for feedback on an open round.

        Parameters
        ----------
        decision: what was decided.
        note: is written to the journal with the outcome.
        answers: the draft and the expert's answer, in memory only and for the latest rounds.
        """
        self._open.keep(decision.step, note, answers)

    def answers(self, step: int) -> dict[str, str] | None:
        """Both answers of a round that waits for feedback; none if they are not kept."""
        return self._open.answers(step)

    def feedback(self, step: int, reported: Reported) -> None:
        """Record what is reported from outside; ``ObservationError`` or ``InputError`` if it does not fit."""
        reported.check(self._route)
        decision = self._journal.store.decision(self._journal.game, step)
        if decision is None and step <= self._router.step:
            raise AlreadyResolved(f"step {step} is archived, so its outcome is final")
        if decision is None:
            raise ObservationError(f"step {step} was never decided")
        if reported.loss is not None:
            entry = self._router.propose_outcome(decision, reported.loss)
        elif reported.refused:
            # An accepted draft may be served instead: it is what the caller has if the coin spares the expert.
            instead = decision.uncertainty < decision.threshold and not decision.serve_draft
            entry = self._router.propose_refusal(decision, draft_served=instead)
        else:
            entry = self._router.propose_forfeit(decision, CALLER_GAVE_UP)
        self._record(decision, entry, {**self._open.note(step), **reported.noted})
        self._open.close(step)
        self._open.forget_answers(step)

    def sweep(self, time_now: float) -> None:
        """Forfeit the rounds whose deadline has passed.

        Parameters
        ----------
        time_now: the time on the monotonic clock, in seconds.
        """
        for decision in self._open.late(time_now):
            self.forfeit(decision, DEADLINE)

    def _record(self, decision: Decision, entry: Resolved, note: dict[str, Any]) -> None:
        self._journal.write(entry, {"at": now(), **note, "propensity": decision.propensity})
        self._router.apply(entry)
        self._journal.history.resolved(decision, self._router.settings.epsilon if entry.refused else entry.loss)
        self._journal.snapshot_if_due()
