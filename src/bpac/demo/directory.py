"""The directory of a demo: its files, which the next demo in the same directory replaces, and the gateway's port."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpac.collecting.answers_file import ROLES
from bpac.demo.pair import NAMES, ModelPair
from bpac.errors import BpacError, InputError
from bpac.local.efforts import CALL_PRICES, effort_models
from bpac.stores.sqlite.writing.ownership import Ownership

ROUTE = "demo"
# A second route, with the effort dial of the local model.
DIAL = "dial"
EPSILON, ALPHA = 0.05, 0.1
DEFAULT_PORT = 8800
# The first line of a configuration that may be overwritten.
MARK = "# Written by  bpac demo  and overwritten by the next one.\n"


@dataclass(frozen=True, slots=True)
class DemoDirectory:
    """The files of a demo.

    Parameters
    ----------
    path: the directory.
    """

    path: Path

    @property
    def config(self) -> Path:
        """The gateway's configuration."""
        return self.path / "gateway.toml"

    @property
    def store(self) -> Path:
        """The SQLite store with the journal."""
        return self.path / "bpac.db"

    @property
    def log(self) -> Path:
        """The gateway's log."""
        return self.path / "gateway.log"

    @property
    def figure(self) -> Path:
        """The figure of threshold, expert calls and loss."""
        return self.path / "demo.png"

    def prepare(self) -> None:
        """Create the directory, or delete an earlier demo's files; ``InputError`` if no demo has written to it."""
        if any(sign in str(self.path.resolve()) for sign in "?#"):
            raise InputError(
                f"--dir {self.path}: the path must not contain ? or #, which the URL of the store cannot contain"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        if any(self.path.iterdir()) and not self._is_ours():
            raise InputError(f"--dir {self.path} contains files that no demo wrote: give another or an empty directory")
        # Raises if another demo is still running here, whose journal would be lost.
        owner = Ownership(str(self.store.resolve()))
        owner.take()
        for path in (self.store, self.log, self.figure, *self.path.glob(f"{self.store.name}-*")):
            path.unlink(missing_ok=True)
        owner.release()

    def write_config(self, pair: ModelPair, port: int) -> None:
        """Write the gateway's configuration."""
        lines = [
            MARK,
            "[gateway]",
            f'listen = "127.0.0.1:{port}"',
            f"store = {_toml(f'sqlite:///{self.store.resolve()}')}",
            "snapshot_every = 1000",
            "drain = 5",
            "probe = false",  # the demo started these models itself, and counts what they are asked
        ]
        for role in ROLES:
            model = pair.models[role]
            lines += [
                f"\n[models.{NAMES[role]}]",
                f"base_url = {_toml(model.base_url)}",
                f"model = {_toml(model.name)}",
                "timeout = 15",
                "retries = 1",
            ]
            lines += [f"body = {_toml(model.body)}"] if model.body else []
        lines += [
            f"\n[routes.{ROUTE}]  # clients ask for model = {_toml(ROUTE)}",
            *(f"{role} = {_toml(NAMES[role])}" for role in ROLES),
            f"epsilon = {EPSILON}",
            f"alpha = {ALPHA}",
        ]
        if pair.name == "local":
            lines += _dial(pair.models["draft"].base_url)
        self.config.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _is_ours(self) -> bool:
        try:
            with self.config.open(encoding="utf-8") as file:
                return file.readline() == MARK
        except (OSError, UnicodeDecodeError):
            return False


def _dial(base_url: str) -> list[str]:
    """The effort dial of the local model as a second route."""
    lines = []
    models = effort_models(base_url)
    for name, table in models.items():
        lines.append(f"\n[models.{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in table.items()]
    return [
        *lines,
        f"\n[routes.{DIAL}]  # the same model with no, short and long thinking",
        f"models = {_toml(list(models))}",
        f"call_prices = {_toml(list(CALL_PRICES))}",
        f"epsilon = {EPSILON}",
        f"alpha = {ALPHA}",
    ]


def chosen_port(wanted: int | None) -> int:
    """The given port; else port 8800 if it is free; else any free port."""
    if wanted is not None:
        if not _is_free(wanted):
            raise BpacError(
                f"port {wanted} is already in use: give another --port, or leave it out to use any free port"
            )
        return wanted
    if _is_free(DEFAULT_PORT):
        return DEFAULT_PORT
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the gateway does: closed connections of an earlier demo do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _toml(value: Any) -> str:
    """A value as TOML: strings, numbers, booleans, and tables of those.

    >>> _toml({"temperature": 0.0, "chat_template_kwargs": {"enable_thinking": False}})
    '{ temperature = 0.0, chat_template_kwargs = { enable_thinking = false } }'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
