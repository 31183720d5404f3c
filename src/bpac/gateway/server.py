"""The gateway as a server process: uvicorn, signals, open files, garbage collection."""

import asyncio
import gc
import logging
import resource
import signal
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import cast

from bpac.errors import MissingExtra
from bpac.gateway.app import Gateway
from bpac.gateway.config.file import Config
from bpac.gateway.http.connections import Connections
from bpac.gateway.http.protocol import LimitedProtocol
from bpac.gateway.reloading import Reloads
from bpac.gateway.service import Service

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
    """A server that reloads its configuration on SIGHUP, and exits with code 0 when a signal stops it.

    Parameters
    ----------
    service: answers requests.
    load: reads the configuration for a reload.
    """

    def __init__(self, service: Service, load: Callable[[], Config]) -> None:
        self._gateway = Gateway(service)
        self._connections = Connections(service.config.limits, service.rejections)
        service.connections = self._connections
        service.reloads = self.reloads = Reloads(load, self._use, service.metrics)
        super().__init__(
            uvicorn.Config(
                self._gateway,
                # uvicorn calls it for each connection, and needs nothing else of the class.
                http=cast("type[asyncio.Protocol]", partial(LimitedProtocol, self._connections)),
                host=service.config.host,
                port=service.config.port,
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=_graceful(service.config),
            )
        )

    async def _use(self, config: Config) -> None:
        """Use another configuration from now on; if this raises, nothing has changed."""
        await self._gateway.reload(config)
        self._connections.limits = config.limits
        self.config.timeout_graceful_shutdown = _graceful(config)
        allow_open_files(_files_needed(config))

    async def serve_with_signals(self) -> None:
        """Serve until a signal stops the process; SIGHUP reloads the configuration."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        try:
            await self.serve()
        finally:
            # Not the default, which would kill the process while it stops.
            loop.remove_signal_handler(signal.SIGHUP)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _on_hangup(self) -> None:
        # While the gateway starts or stops, there is no point in another configuration.
        if self.started and not self.should_exit:
            self.reloads.request()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; a second Ctrl-C does not wait for requests under way."""
        # Like uvicorn's own method, except that the signal is not kept: uvicorn would raise it again at the end, and
        # the process would look as if it had been killed.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        else:
            self.should_exit = True


def _graceful(config: Config) -> int:
    return max(1, round(config.drain))


def _files_needed(config: Config) -> int:
    return config.limits.max_connections + 2 * config.max_in_flight + OTHER_FILES


def new_server(config: Config, load: Callable[[], Config] | None = None) -> "GatewayServer":
    """A server, ready to run; its store is open and locked.

    Parameters
    ----------
    config: the configuration to start with.
    load: reads the configuration again for a reload (default: none, so the same one is used again).
    """
    return GatewayServer(Service(config), load or (lambda: config))


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
    load: reads the configuration again when the process gets SIGHUP (default: none).
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it can be handled: the default kills the process
    server = new_server(config, load)
    allow_open_files(_files_needed(config))
    # Imported modules stay and need not be scanned for garbage; requests leave few reference cycles.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve_with_signals())
    except SystemExit:
        return False  # the start failed, and uvicorn has logged why
    return server.started and not server.force_exit and not server.lifespan.should_exit
