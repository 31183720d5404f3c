"""The games of one front: the tickets that it has taken, and the rounds whose outcome it will report."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from bpac.dashboard.history.refusals import RefusalReason
from bpac.errors import BpacError, InputError
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.rounds.outcomes import RESTART
from bpac.gateway.games.rounds.sessions import SessionClaim
from bpac.gateway.telemetry.request_ids import CURRENT
from bpac.gateway.workers.messages import stage_answers, walk_to_list
from bpac.routing.cascade.walk import Walk
from bpac.routing.decision import Decision
from bpac.routing.tickets.ticket import Ticket
from bpac.wire.usage import Usage


class Durable(NamedTuple):
    """A reply that is sent when everything before it is durable."""

    value: Any
    game: LiveGame


class Later(NamedTuple):
    """A question that can be answered when a future is done: it has to be asked again then."""

    future: "asyncio.Future[None]"


class GameNotOpen(BpacError):
    """The front names a game that is not open (any more)."""


class GamesOfOwner(Protocol):
    """The games that are open in the owner."""

    def open_game(self, number: int) -> LiveGame | None:
        """An open game."""

    def expert_calls(self, model: str) -> int:
        """The calls of a model that are under way in all fronts."""


class FrontGames:
    """What one front has under way in the games.

    Parameters
    ----------
    open_games: the games that are open.

    Attributes
    ----------
    calls: calls under way of each expert's model in this front.
    """

    def __init__(self, open_games: GamesOfOwner) -> None:
        self._open = open_games
        self._tickets: dict[tuple[int, Ticket], LiveGame] = {}
        self._walks: dict[tuple[int, Ticket], Walk] = {}
        self._rounds: dict[tuple[int, int], tuple[LiveGame, Decision]] = {}
        # Sessions whose first request is on its way to its decision in this front.
        self._claims: dict[tuple[int, SessionClaim], LiveGame] = {}
        self.calls: dict[str, int] = {}

    @property
    def tickets(self) -> int:
        """The number of requests before their decision."""
        return len(self._tickets)

    @property
    def rounds(self) -> int:
        """The number of rounds whose outcome the front will report."""
        return len(self._rounds)

    def arrive(self, number: int, expert_calls: int, cascade: bool) -> list[Any]:
        """Take a ticket."""
        game = self._game(number)
        if game.store.failure is not None:  # before anything is asked for a request that cannot be decided
            raise game.store.failure
        model = game.route.expert.name
        self.calls[model] = expert_calls
        game.expect(self._open.expert_calls(model))
        ticket = game.drafting.arrive()
        key = (number, ticket)
        self._tickets[key] = game
        walk = None
        if cascade:
            self._walks[key] = game.walk(ticket)
            walk = walk_to_list(self._walks[key])
        return [list(ticket), game.skips_draft(), walk]

    def join_session(self, number: int, caller: str, session: str) -> Any:
        """The decision that a request of a session follows, or the claim to begin an episode."""
        game = self._game(number)
        key = game.session_key(caller, session)
        found = game.sessions.look(key)
        if isinstance(found, asyncio.Future):
            return Later(found)
        if isinstance(found, SessionClaim):
            self._claims[number, found] = game
            return [key, found.number, None]
        episode = game.followed(found)
        return Durable([key, 0, [episode.decision.to_list(), episode.decision_id]], game)

    def leave_session(self, number: int, key: str, claim: int) -> None:
        """Give a claim back; nothing happens if its request was decided."""
        if (game := self._claims.pop((number, SessionClaim(key, claim)), None)) is not None:
            game.sessions.leave(SessionClaim(key, claim))

    def follow(self, number: int, decision: list[Any], answered_by: str, usage: list[int]) -> None:
        """Count a later request of an episode."""
        self._game(number).savings.follow(Decision.from_list(decision), answered_by, Usage._make(usage))

    def scored(self, number: int, uncertainty: float, text: int, impossible: bool) -> None:
        """Watch a score."""
        self._game(number).scores.seen(uncertainty, text, impossible=impossible)

    def decide(
        self,
        number: int,
        terms: list[Any],
        scores: list[Any],
        note: dict[str, Any],
        known: list[Any],
    ) -> Any:
        """Decide a request; none if its ticket is void.

        Parameters
        ----------
        number, terms: its game and its ticket.
        scores: the uncertainty of the draft; in a cascade none, and the answers of its models.
        note: for the journal.
        known: its features, and whether the draft is unfinished.
        """
        (uncertainty, answers), (features, unfinished) = scores, known
        ticket = Ticket._make(terms)
        key = (number, ticket)
        game, walk = self._tickets.get(key), self._walks.get(key)
        if game is None or game is not self._game(number):
            self._taken(number, terms)
            self._game(number).savings.drafted(Usage.from_note(note, "draft"))
            return None
        score: float | Walk | None = uncertainty
        if walk is not None:
            _repeat(walk, stage_answers(answers))
            score = walk
        if score is None:
            raise ValueError("a decision needs a score")
        if isinstance(features, list):
            features = tuple(features)
        decided = game.desk.decide_now(score, ticket, note, features=features, unfinished=unfinished)
        self._taken(number, terms)  # not before: a ticket that could not be decided is still to be withdrawn
        if decided is None:
            return None
        decision, decision_id, worth = decided
        if decision.call_expert:
            self._rounds[number, decision.step] = (game, decision)
        return Durable([decision.to_list(), decision_id, worth], game)

    def withdraw(self, number: int, terms: list[Any], reason: str) -> None:
        """Withdraw a ticket."""
        if (game := self._taken(number, terms)) is not None:
            game.drafting.withdraw(Ticket._make(terms), reason)

    def no_score(self, number: int, terms: list[Any], reason: str, ended: bool, request: str) -> None:
        """Withdraw the ticket of a request without a score; the last value is the id of the request."""
        with logged_with(request):
            if (game := self._taken(number, terms)) is not None:
                game.desk.no_score_now(Ticket._make(terms), reason, ended=ended)
            else:  # the ticket is void, or it belongs to another front
                self._game(number).unscored_log.add(reason)

    def _taken(self, number: int, terms: list[Any]) -> LiveGame | None:
        """The game of a ticket that this front is done with; none if the ticket is void."""
        key = (number, Ticket._make(terms))
        self._walks.pop(key, None)
        return self._tickets.pop(key, None)

    def resolve(self, number: int, step: int, loss: float | None, note: dict[str, Any], cause: str) -> Any:
        """Record the loss of a draft."""
        game, decision = self._round(number, step, note)
        if decision is None:
            return None
        game.outcomes.resolve(decision, loss, note, cause)
        return None

    def resolve_stages(
        self, number: int, step: int, answers: list[Any], losses: list[float | None], note: dict[str, Any]
    ) -> Any:
        """Record what an audit of a cascade found."""
        game, decision = self._round(number, step, note)
        if decision is not None:
            game.outcomes.resolve_stages(decision, stage_answers(answers), losses, note)

    def forfeit(self, number: int, step: int, cause: str, draft_served: bool) -> Any:
        """Forfeit a round; whether it had no outcome yet."""
        game, decision = self._round(number, step, {})
        recorded = decision is not None and game.outcomes.forfeit(decision, cause, draft_served=draft_served)
        return Durable(recorded, game)

    def refuse(self, number: int, step: int, reason: str, draft_served: bool) -> Any:
        """Record that the expert refused; whether the round had no outcome yet."""
        game, decision = self._round(number, step, {})
        recorded = decision is not None and game.outcomes.refuse(
            decision, RefusalReason.read(reason), draft_served=draft_served
        )
        return Durable(recorded, game)

    def await_feedback(self, number: int, step: int, note: dict[str, Any], answers: dict[str, str]) -> None:
        """Keep what is needed for feedback from outside; the front is done with the round."""
        game, decision = self._round(number, step, note)
        if decision is not None:
            game.outcomes.await_feedback(decision, note, answers)

    def _round(self, number: int, step: int, note: dict[str, Any]) -> tuple[LiveGame, Decision | None]:
        """The game of a round and what was decided; no decision if it is not (any more) open in this front."""
        found = self._rounds.pop((number, step), None)
        game = self._game(number)
        if found is None or found[0] is not game:
            game.savings.outcome_unused(note)
            return game, None
        return found

    def drafted(self, number: int, usage: list[int]) -> None:
        """Count a draft without a decision, or after it."""
        self._game(number).savings.drafted(Usage._make(usage))

    def answered(self, number: int, usage: list[int]) -> None:
        """Count tokens of the expert that belong to no outcome."""
        self._game(number).savings.answered(Usage._make(usage))

    def outcome_unused(self, number: int, note: dict[str, Any]) -> None:
        """Count the tokens of an outcome that is not recorded."""
        self._game(number).savings.outcome_unused(note)

    def _game(self, number: int) -> LiveGame:
        game = self._open.open_game(number)
        if game is None:
            raise GameNotOpen
        return game

    def cut_off(self) -> None:
        """The front is lost: its tickets are cut off, and its audits forfeited unless feedback comes from outside."""
        # Tickets that were void already were cut off with those of another front.
        under_way = ((game, ticket) for (_, ticket), game in self._tickets.items())
        games = {id(game): game for game, ticket in under_way if game.drafting.is_under_way(ticket)}
        rounds = list(self._rounds.values())
        self._tickets.clear()
        self._walks.clear()
        self._rounds.clear()
        for (_, claim), game in self._claims.items():
            game.sessions.leave(claim)
        self._claims.clear()
        for game in games.values():
            if self._open.open_game(game.number) is game:
                game.drafting.cut_off("a process of the gateway ended")
        for game, decision in rounds:
            if self._open.open_game(game.number) is game and not game.outcomes.external:
                game.outcomes.forfeit(decision, RESTART)


@contextmanager
def logged_with(request: str) -> Iterator[None]:
    """Write the id of a request with every line of the log."""
    token = CURRENT.set(request)
    try:
        yield
    finally:
        CURRENT.reset(token)


def _repeat(walk: Walk, answers: tuple[Any, ...]) -> None:
    """Walk the way again that the front has walked."""
    while (stage := walk.next_stage) is not None:
        if answer := answers[stage - 1]:
            walk.answered(*answer)
        elif answer is None:
            walk.failed()
        else:
            raise InputError("the walk of a cascade has not ended")
