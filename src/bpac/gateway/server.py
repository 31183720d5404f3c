"""The gateway as a server process: uvicorn, signals, open files, garbage collection."""

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, cast

from bpac.errors import BpacError, MissingExtra
from bpac.gateway.app import Gateway
from bpac.gateway.config.file import Config
from bpac.gateway.handover import check_restart, inherited_sockets, restart_in_place
from bpac.gateway.http.connections.connections import Connections
from bpac.gateway.http.connections.protocol import LimitedProtocol
from bpac.gateway.reloading import Reloads
from bpac.gateway.service import Service
from bpac.stores.redis.server.address import is_redis

try:
    import uvicorn
except ImportError as error:
    raise MissingExtra("uvicorn", "gateway") from error

log = logging.getLogger("bpac.gateway")

# Open files other than connections to callers and models: the store, logs, the event loop.
OTHER_FILES = 64
# GC thresholds: collect the youngest generation after so many net allocations, the older ones every tenth time.
GC_THRESHOLDS = (20_000, 10, 10)


class GatewayServer(uvicorn.Server):
    """A server that reloads its configuration on SIGHUP, restarts on SIGUSR2, and exits with code 0 when it is stopped.

    Parameters
    ----------
    service: answers requests.
    load: reads the configuration for a reload.

    Attributes
    ----------
    handed_over: the descriptors of the listening sockets if the process is to be replaced by a new one.
    """

    def __init__(self, service: Service, load: Callable[[], Config]) -> None:
        self._load = load
        self._restarting: asyncio.Task[None] | None = None
        self.handed_over: list[int] = []
        self._gateway = self._new_gateway(service)
        self._connections = Connections(service.config.limits, service.rejections)
        self._limit(self._connections, service.config)
        service.connections = self._connections
        service.reloads = self.reloads = Reloads(load, self._use, service.metrics)
        super().__init__(
            uvicorn_config(
                self._gateway,
                partial(LimitedProtocol, self._connections),
                host=service.config.host,
                port=service.config.port,
                timeout_graceful_shutdown=graceful(service.config),
            )
        )

    def _new_gateway(self, service: Service) -> Gateway:
        return Gateway(service)

    def _limit(self, connections: Connections, config: Config) -> None:
        connections.limits = config.limits

    async def _use(self, config: Config) -> None:
        """Use another configuration from now on; if this raises, nothing has changed."""
        await self._gateway.reload(config)
        self._limit(self._connections, config)
        self.config.timeout_graceful_shutdown = graceful(config)
        allow_open_files(files_needed(config))

    async def serve_with_signals(self, sockets: list[socket.socket]) -> None:
        """Serve until a signal stops the process; SIGHUP reloads the configuration, SIGUSR2 restarts the process.

        Parameters
        ----------
        sockets: listening sockets that were inherited; none to open one as the configuration says.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        loop.add_signal_handler(signal.SIGUSR2, self._on_restart)
        try:
            await self.serve(sockets or None)
        finally:
            for number in (signal.SIGHUP, signal.SIGUSR2):
                loop.remove_signal_handler(number)
            # Not the default, which would kill the process while it stops.
            ignore_signals()

    def _on_hangup(self) -> None:
        # While the gateway starts or stops, there is no point in another configuration.
        if self.started and not self.should_exit:
            self.reloads.request()

    def _on_restart(self) -> None:
        if self.started and not self.should_exit and self._restarting is None:
            self._restarting = asyncio.create_task(self._restart())

    async def _restart(self) -> None:
        """Stop and keep the listening sockets, unless a new process could not start with the configuration."""
        try:
            config = await asyncio.to_thread(self._load)
            await asyncio.to_thread(check_restart, self._gateway.service.config, config)
            await self._gateway.service.check_graders(config)
            # Copies, so that the sockets stay open when uvicorn closes its own.
            self.handed_over = [os.dup(each.fileno()) for server in self.servers for each in server.sockets]
        except BpacError as error:
            log.error("no restart: the configuration cannot be used", extra={"error": str(error)})
            self._restarting = None
        except Exception as error:  # whatever it is, the gateway goes on, and a later signal is heeded
            log.error("no restart: it could not be prepared", exc_info=error)
            self._restarting = None
        else:
            log.info("restarting: connections wait until the new process has started")
            self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, also if a restart has begun; a second Ctrl-C does not wait for requests under way."""
        self.handed_over = []
        # Like uvicorn's own method, except that the signal is not kept: uvicorn would raise it again at the end, and
        # the process would look as if it had been killed.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        else:
            self.should_exit = True


def uvicorn_config(app: Callable[..., Any], protocol: Callable[..., asyncio.Protocol], **more: Any) -> uvicorn.Config:
    """How uvicorn runs a gateway, or a front of one: requests are logged, and headers read, by the gateway itself.

    Parameters
    ----------
    app: answers requests.
    protocol: makes the protocol of a new connection.
    more: further settings of uvicorn.
    """
    # uvicorn calls the protocol for each connection, and needs nothing else of a class.
    made = cast("type[asyncio.Protocol]", protocol)
    own: dict[str, Any] = {"lifespan": "on", "ws": "none", "log_config": None, "access_log": False}
    return uvicorn.Config(app, http=made, server_header=False, proxy_headers=False, **own, **more)


def graceful(config: Config) -> int:
    """Seconds that connections may stay open when the gateway stops."""
    return max(1, round(config.drain))


def files_needed(config: Config) -> int:
    """How many files a process needs to have open for its connections."""
    return config.limits.max_connections + 2 * config.max_in_flight + OTHER_FILES


def new_server(config: Config, load: Callable[[], Config] | None = None) -> "GatewayServer":
    """A server, ready to run; its store is open and locked.

    Parameters
    ----------
    config: the configuration to start with.
    load: reads the configuration again for a reload (default: none, so the same one is used again).
    """
    return GatewayServer(_service(config), load or (lambda: config))


def _service(config: Config) -> Service:
    if is_redis(config.store):
        from bpac.gateway.shared.shared_service import SharedService  # noqa: PLC0415  # redis-py is optional

        return SharedService(config)
    return Service(config)


def allow_open_files(wanted: int) -> None:
    """Raise the number of files that this process may open, as far as the system allows: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        log.warning(
            "this process may open fewer files than its connections may need: raise the limit (ulimit -n), or lower "
            "max_connections or max_in_flight in [gateway]",
            extra={"allowed": allowed, "needed": wanted},
        )


def serve(config: Config, load: Callable[[], Config] | None = None) -> bool:
    """Serve until a signal stops the process; true if it started and stopped without an error.

    Parameters
    ----------
    config: the configuration to start with.
    load: reads the configuration again when the process gets SIGHUP or SIGUSR2 (default: none).
    """
    ignore_signals()  # until they can be handled: the default kills the process
    sockets = inherited_sockets(config)
    server = new_server(config, load)
    allow_open_files(files_needed(config))
    # Imported modules stay and need not be scanned for garbage; requests leave few reference cycles.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve_with_signals(sockets))
    except SystemExit:
        return False  # the start failed, and uvicorn has logged why
    fine = server.started and not server.force_exit and not server.lifespan.should_exit
    if fine and server.handed_over:
        restart_in_place(server.handed_over, config)
    return fine


def ignore_signals() -> None:
    """Ignore the signals that reload and restart; a process that replaces this one ignores them, too, at its start."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
