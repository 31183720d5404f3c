"""Decisions of shared games by their id."""

import asyncio

from bpac.gateway.auth.keys import Identity
from bpac.gateway.games.rounds.decisions import Decisions
from bpac.gateway.games.shown.shown_game import ShownGame


class SharedDecisions(Decisions):
    """The decisions of all shared games. Redis is asked in a thread: one that hangs must not hold up requests."""

    async def find(self, decision_id: str, identity: Identity) -> tuple[ShownGame, int]:
        """The game and the step of a decision, or ``BadRequest`` if there is none or the caller may not see it."""
        return await asyncio.to_thread(self._found, decision_id, identity)
