"""The gateway on a socket."""

import asyncio
import gc

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


def new_server(config: Config) -> uvicorn.Server:
    """A server, ready to run; its store is open, and so nobody else's."""
    return uvicorn.Server(
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
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(server.serve())
    return server.started
