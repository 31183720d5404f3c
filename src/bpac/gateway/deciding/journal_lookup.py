"""Decisions that are in the journal and not in memory: after a restart, callers ask for them again."""

import time

from bpac.gateway.deciding.held_tickets import KEEP_REPLY
from bpac.gateway.games.desk import REPORTED, TICKET, Decided, DecidedBefore, GameDesk
from bpac.gateway.games.local_desk import LocalDesk
from bpac.routing.decision import Decision

# Rounds of a game that are looked through. They are read again when what was decided since may be forgotten.
LATEST = 1000
READ_EVERY = KEEP_REPLY


class JournalLookup:
    """Finds the decision of a ticket among the latest rounds of a game of this process."""

    def __init__(self) -> None:
        # For each game: when its rounds were read, and the decisions of tickets in them with what was reported.
        self._read: dict[int, tuple[float, dict[str, tuple[Decision, float | None]]]] = {}

    def find(self, desk: GameDesk, nonce: str) -> DecidedBefore | None:
        """The decision of a ticket; none if it is not there, or if the journal is elsewhere.

        Parameters
        ----------
        desk: the game.
        nonce: of the ticket, which is noted beside the decision.
        """
        if not isinstance(desk, LocalDesk):
            return None
        game, time_now = desk.game, time.monotonic()
        read_at, decisions = self._read.get(game.number, (0.0, {}))
        if not read_at or time_now - read_at > READ_EVERY:
            rounds = game.store.rounds(game.kept, limit=LATEST)
            decisions = {
                str(note[TICKET]): (entry, note.get(REPORTED))
                for (entry, note), _ in rounds
                if isinstance(entry, Decision) and TICKET in note
            }
            self._read[game.number] = (time_now, decisions)
        if nonce not in decisions:
            return None
        decision, reported = decisions[nonce]
        return DecidedBefore(Decided(decision, game.decision_id(decision.step)), reported)
