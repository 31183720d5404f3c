"""The owner without HTTP: the service of a gateway whose chats are answered in other processes."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bpac.gateway.config.file import Config
from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.service import Service
from bpac.gateway.workers.board import Board, SharedConnections
from bpac.gateway.workers.ends import ProcessEnds
from bpac.gateway.workers.owner.fronts import Fronts

# Seconds for which the owner waits for fronts that stop, beyond the time that they wait for their requests.
MARGIN = 10.0


class OwnerService(Service):
    """All routes of a gateway; fronts decide through it.

    Parameters
    ----------
    config: the configuration.
    text: gives the file that the latest configuration was read from.
    fronts: how many fronts there should be.
    board: what the fronts say about themselves.
    listening: the socket that fronts connect to.
    ends: of the owners before this one.
    """

    def __init__(
        self,
        config: Config,
        text: Callable[[], bytes],
        *,
        fronts: int,
        board: Board,
        listening: socket.socket,
        ends: ProcessEnds,
    ) -> None:
        super().__init__(config)
        self._text = text
        self._listening = listening
        self.ends = ends
        self.metrics.count("bpac_workers_lost_total", by=ends.count, process="owner")
        self.metrics.count("bpac_workers_lost_total", by=0, process="front")
        self.metrics.count("bpac_worker_faults_total", by=0, fault="bad message")
        self.fronts = Fronts(self, fronts)
        self._shared_connections = SharedConnections(board, fronts)
        self._server: asyncio.AbstractServer | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Restore the games, and let fronts connect."""
        await super().start()
        self.connections = self._shared_connections
        self.fronts.use(self._running.current, self._text())
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: self.fronts.new_session().link, sock=self._listening, backlog=1024
        )
        self._watching = asyncio.create_task(self.fronts.watch())

    async def stop(self) -> None:
        """Wait for the fronts to finish what they have under way, and close everything."""
        await self.fronts.all_left(self.config.drain + MARGIN)
        if self._server is not None:
            self._server.close()
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        await super().stop()

    async def reload(self, config: Config) -> None:
        """Answer new requests with another configuration, in all fronts; if this raises, nothing has changed."""
        await super().reload(config)
        self.fronts.use(self._running.current, self._text())

    def check_store(self) -> None:
        """Raise ``StoreError`` while nothing can be written to the journal."""
        self._check_store()

    def keep_open(self, game: LiveGame) -> None:
        """Keep a game that was opened for a front which still has an earlier configuration, until it is idle."""
        if game not in self.open_games():
            self._retired.add(game)

    @property
    def busy(self) -> int:
        """The number of requests under way in all fronts, and of audits behind them."""
        return super().busy + self.fronts.busy

    def warnings(self) -> list[dict[str, Any]]:
        """Settings that do not suit the traffic, as JSON values."""
        return [*super().warnings(), *self.fronts.warnings]

    def workers(self) -> dict[str, Any] | None:
        """The processes of this gateway, as JSON values."""
        return self.fronts.to_json()
