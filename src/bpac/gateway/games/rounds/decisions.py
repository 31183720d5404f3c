"""Decisions by their id: who may see them, both answers of those that wait for feedback, and the feedback itself."""

from collections.abc import Callable, Iterable

from bpac.errors import AlreadyResolved, InputError, NotAudited, ObservationError
from bpac.gateway.auth.keys import Identity, Role
from bpac.gateway.games.rounds.decision_ids import is_unreadable, read_decision_id
from bpac.gateway.games.rounds.reported import Reported
from bpac.gateway.games.shown.shown_game import ShownGame
from bpac.gateway.http.bad_request import BadRequest, archived_decision, no_such_decision, not_in_journal_yet
from bpac.routing.decision import Decision
from bpac.stores.store import Store


class Decisions:
    """The decisions of all live games.

    Parameters
    ----------
    store: where journals are kept.
    games: the live games.
    """

    def __init__(self, store: Store, games: Callable[[], Iterable[ShownGame]]) -> None:
        self._store = store
        self._games = games

    async def find(self, decision_id: str, identity: Identity) -> tuple[ShownGame, int]:
        """The game and the step of a decision, or ``BadRequest`` if there is none or the caller may not see it.

        Parameters
        ----------
        decision_id: what ``x-bpac-decision`` said.
        identity: who asks. Unless it is an operator, the decision must have been made for it.
        """
        return self._found(decision_id, identity)

    def _found(self, decision_id: str, identity: Identity) -> tuple[ShownGame, int]:
        number, step = read_decision_id(decision_id, self._store) or (0, 0)
        if not number and is_unreadable(decision_id, self._store):
            raise archived_decision()
        game = next((game for game in self._games() if game.number == number), None)
        if game is None:
            raise no_such_decision()
        if Role.OPERATOR not in identity.roles:
            self._require_sight(game, step, identity)
        return game, step

    async def answers(self, decision_id: str, identity: Identity) -> dict[str, str]:
        """Both answers of a round that waits for feedback, or ``BadRequest``."""
        game, step = await self.find(decision_id, identity)
        answers = game.answers(step)
        if answers is None:
            raise BadRequest("the answers of this decision are not kept", 404, "decision", "no_answers")
        return answers

    async def report(self, decision_id: str, reported: Reported, identity: Identity) -> None:
        """Record what is reported from outside, or raise ``BadRequest``."""
        game, step = await self.find(decision_id, identity)
        try:
            await game.feedback(step, reported)
        except InputError as error:
            raise BadRequest(str(error), 422, "loss", "out_of_range") from error
        except NotAudited as error:
            raise BadRequest(str(error), 409, "decision", "not_audited") from error
        except AlreadyResolved as error:
            raise BadRequest(str(error), 409, "decision", "already_resolved") from error
        except ObservationError as error:
            raise BadRequest(str(error), 404, "decision", "unknown_decision") from error

    def _require_sight(self, game: ShownGame, step: int, identity: Identity) -> None:
        for (entry, note), _ in self._store.rounds(game.kept, step + 1, 1):
            if isinstance(entry, Decision) and entry.step == step:
                identity.require_sight(note.get("caller"))
                return
        if step > game.router.step:  # of another gateway, and this one has not read so far
            raise not_in_journal_yet()
        # Its id was served, so the decision was durable. Now it is in an archive, and with it whom it was made for.
        raise archived_decision()
