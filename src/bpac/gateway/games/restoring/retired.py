"""Games that get no new requests because a reload changed their terms or removed their route.

Their requests in progress and their open rounds still count in them, so they stay until both have ended. A game that is
forgotten earlier would lose outcomes; one that were opened a second time would have two writers.
"""

from collections.abc import Iterable, Iterator

from bpac.gateway.games.live_game import LiveGame


class RetiredGames:
    """The games that end."""

    def __init__(self) -> None:
        self._games: list[LiveGame] = []

    def __iter__(self) -> Iterator[LiveGame]:
        return iter(self._games)

    def __len__(self) -> int:
        return len(self._games)

    def replace(self, before: Iterable[LiveGame], after: Iterable[LiveGame]) -> None:
        """Take in the games that a reload has ended, and let go of those that it has resumed.

        Parameters
        ----------
        before, after: the games that got new requests before and after the reload.
        """
        current = {game.number for game in after}
        known = {game.number: game for game in (*self._games, *before)}
        self._games = [game for number, game in known.items() if number not in current]

    def add(self, game: LiveGame) -> None:
        """Take in a game that was opened under an earlier configuration."""
        self._games.append(game)

    def end_idle(self) -> None:
        """Write the end of the games in which nothing is open any more, and forget them."""
        for game in [game for game in self._games if game.idle]:
            game.stop()
            game.journal.snapshot()
            self._games.remove(game)
