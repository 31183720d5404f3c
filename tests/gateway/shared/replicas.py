"""``bpac serve`` with games in Redis, in processes of their own."""

import urllib.request
from pathlib import Path
from typing import Any

from tests.gateway.configured import settings
from tests.gateway.serving import Process, to_toml


class Replica(Process):
    """A gateway that shares its games.

    Parameters
    ----------
    directory: where its configuration and its log are.
    base_url: where its models are.
    store: the address of its store.
    outage: ``store_outage`` of its configuration, without its file (default: none).
    """

    def __init__(
        self, directory: Path, base_url: str, store: str, outage: dict[str, Any] | None = None, **route: Any
    ) -> None:
        directory.mkdir(exist_ok=True)
        super().__init__(directory, base_url, **route)
        self.store = store
        gateway: dict[str, Any] = {"listen": f"127.0.0.1:{self.port}", "store": store, "snapshot_every": 300}
        if outage is not None:
            gateway["store_outage"] = outage | {"file": str(directory / "outside.log")}
        self.config.write_text(to_toml(settings(base_url, gateway=gateway, **route)))

    def metrics(self) -> str:
        """The page that Prometheus reads."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as response:
            text: bytes = response.read()
        return text.decode()
