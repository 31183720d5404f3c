"""The gateway as a server process: uvicorn, signals, open files, garbage collection."""

import asyncio
import gc
import logging
import resource
import signal
from functools import partial
from types import FrameType
from typing import cast

from bpac.errors import MissingExtra
from bpac.gateway.app import Gateway
from bpac.gateway.config.file import Config
from bpac.gateway.http.connections import Connections
from bpac.gateway.http.protocol import LimitedProtocol
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


class _Server(uvicorn.Server):
    """A server that exits with code 0 when a signal stops it."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; a second Ctrl-C does not wait for requests under way."""
        # Like uvicorn's own method, except that the signal is not kept: uvicorn would raise it again at the end, and
        # the process would look as if it had been killed.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        else:
            self.should_exit = True


def new_server(config: Config) -> uvicorn.Server:
    """A server, ready to run; its store is open and locked."""
    service = Service(config)
    connections = service.connections = Connections(config.limits, service.rejections)
    return _Server(
        uvicorn.Config(
            Gateway(service),
            # uvicorn calls it for each connection, and needs nothing else of the class.
            http=cast("type[asyncio.Protocol]", partial(LimitedProtocol, connections)),
            host=config.host,
            port=config.port,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=max(1, round(config.drain)),
        )
    )


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


def serve(config: Config) -> bool:
    """Serve until a signal stops the process; true if it started and stopped without an error."""
    server = new_server(config)
    allow_open_files(config.limits.max_connections + 2 * config.max_in_flight + OTHER_FILES)
    # Imported modules stay and need not be scanned for garbage; requests leave few reference cycles.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve())
    except SystemExit:
        return False  # the start failed, and uvicorn has logged why
    return server.started and not server.force_exit and not server.lifespan.should_exit
