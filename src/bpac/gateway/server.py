"""The gateway on a socket."""

import asyncio
import gc
import signal
from types import FrameType

from bpac.errors import MissingExtra
from bpac.gateway.app import Gateway
from bpac.gateway.config import Config
from bpac.gateway.service import Service

try:
    import uvicorn
except ImportError as error:
    raise MissingExtra("uvicorn", "gateway") from error


# When to search: after so many more objects made than deleted, and the older ones every tenth time.
RUBBISH = (20_000, 10, 10)


class _Server(uvicorn.Server):
    """A server whose end is a good one when it was told to stop."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; a second Ctrl-C does not wait for what is under way."""
        # As uvicorn's own, except that the signal is not remembered: it would be raised again after the end, and the
        # process would look as if it had been killed.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        else:
            self.should_exit = True


def new_server(config: Config) -> uvicorn.Server:
    """A server, ready to run; its store is open, and so nobody else's."""
    return _Server(
        uvicorn.Config(
            Gateway(Service(config)),
            host=config.host,
            port=config.port,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=max(1, round(config.drain)),
            h11_max_incomplete_event_size=64 * 1024,
        )
    )


def serve(config: Config) -> bool:
    """Serve until told to stop by a signal; whether it came to a good end."""
    server = new_server(config)
    # What was imported stays for ever and need not be searched for rubbish; and requests leave little of it.
    gc.freeze()
    gc.set_threshold(*RUBBISH)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(server.serve())
    except SystemExit:
        return False  # it could not start, and uvicorn has logged why
    return server.started and not server.force_exit and not server.lifespan.should_exit
