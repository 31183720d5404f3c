"""The owner as a server process."""

import asyncio

from bpac.gateway.app import Gateway
from bpac.gateway.config.file import Config, read_config
from bpac.gateway.http.connections.connections import Connections
from bpac.gateway.running_config import new_graders
from bpac.gateway.server import GatewayServer, ignore_signals
from bpac.gateway.service import Service
from bpac.gateway.workers.board import Board
from bpac.gateway.workers.ends import ProcessEnds
from bpac.gateway.workers.owner.app import OwnerGateway
from bpac.gateway.workers.owner.service import OwnerService
from bpac.gateway.workers.processes import Inherited, listening, run_server


class ConfigFile:
    """The configuration file, read so that others can be given exactly what was read.

    Parameters
    ----------
    path: the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.text = b""

    def load(self) -> Config:
        """Read the file."""
        config, self.text = read_config(self._path)
        return config


class OwnerServer(GatewayServer):
    """The server of the owner: it listens on a Unix socket, and restarts with the supervisor."""

    def _new_gateway(self, service: Service) -> Gateway:
        return OwnerGateway(service)

    def _limit(self, connections: Connections, config: Config) -> None:
        # Only fronts connect, each for many callers; they have limited them.
        connections.limits = config.limits.without_connections()

    def _on_restart(self) -> None:
        pass


def run_owner(inherited: Inherited) -> bool:
    """Run the owner; true if it started and stopped without an error."""
    ignore_signals()
    file = ConfigFile(inherited.config)
    board = Board(inherited.board, slots=inherited.fronts + 1)
    desk, pages = map(listening, inherited.sockets)
    service = OwnerService(
        file.load(), lambda: file.text, fronts=inherited.fronts, board=board, listening=desk,
        ends=ProcessEnds(inherited.restarts, inherited.ends),
    )  # fmt: skip
    server = OwnerServer(service, file.load)
    return run_server(server, lambda: server.serve_with_signals([pages]), inherited, board)


def check(config: str) -> bool:
    """Whether the graders of a configuration can be made."""
    graders = new_graders(read_config(config)[0])

    async def close() -> None:
        for grader in graders.values():
            if grader is not None:
                await grader.close()

    asyncio.run(close())
    return True
