"""A front as a server process."""

import asyncio
import socket
from functools import partial

from bpac.errors import MissingExtra
from bpac.gateway.config.file import Config
from bpac.gateway.http.connections.connections import Connections
from bpac.gateway.http.connections.protocol import LimitedProtocol
from bpac.gateway.server import allow_open_files, files_needed, graceful, ignore_signals, uvicorn_config
from bpac.gateway.workers.board import Board
from bpac.gateway.workers.front.acceptor import Acceptor
from bpac.gateway.workers.front.app import FrontGateway
from bpac.gateway.workers.front.service import FrontService
from bpac.gateway.workers.processes import Inherited, listening, run_server

try:
    import uvicorn
except ImportError as error:
    raise MissingExtra("uvicorn", "gateway") from error


class FrontServer(uvicorn.Server):
    """The server of a front.

    Parameters
    ----------
    service: answers chats.
    inherited: what the supervisor has passed on.
    board: the memory that all processes share.
    """

    def __init__(self, service: FrontService, inherited: Inherited, board: Board) -> None:
        self._service = service
        self._inherited = inherited
        self._board = board
        self._acceptors: list[Acceptor] = []
        self.open_connections: Connections
        super().__init__(uvicorn_config(FrontGateway(service, inherited.pages), partial(self._protocol)))

    def _protocol(self, **uvicorns: object) -> asyncio.Protocol:
        return LimitedProtocol(self.open_connections, **uvicorns)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections when the owner has answered."""
        await super().startup(sockets=[])
        if self.should_exit or not self.started:
            return
        config = self._service.config
        self.open_connections = Connections(config.limits, self._service.rejections)
        self._use(config)
        before = self._service.changed

        def changed() -> None:
            before()
            self._use(self._service.config)

        self._service.changed = changed
        new = partial(self._protocol, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        self._acceptors = [
            Acceptor(listening, new, self._board, self._inherited.index, self.open_connections)
            for listening in sockets or ()
        ]

    def _use(self, config: Config) -> None:
        self.open_connections.limits = config.limits
        self.config.timeout_graceful_shutdown = graceful(config)
        allow_open_files(files_needed(config))

    async def on_tick(self, counter: int) -> bool:
        """Count the connections."""
        self._service.connections = len(self.open_connections)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and finish what was accepted."""
        for acceptor in self._acceptors:
            await acceptor.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: object) -> None:
        """Stop; the signal is not raised again at the end."""
        self.should_exit = True


def run_front(inherited: Inherited) -> bool:
    """Run a front; true if it started and stopped without an error."""
    ignore_signals()
    board = Board(inherited.board, slots=inherited.fronts + 1)
    service = FrontService(inherited.desk, inherited.index, inherited.fronts)
    server = FrontServer(service, inherited, board)
    sockets = [listening(each) for each in inherited.sockets]
    return run_server(server, lambda: server.serve(sockets), inherited, board, lambda: len(server.open_connections))
