"""Where a demo keeps its files: a directory of its own, emptied by the next demo in it."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpac.collecting.answers_file import ROLES
from bpac.demo.pair import NAMES, ModelPair
from bpac.errors import BpacError, InputError
from bpac.stores.sqlite.ownership import Ownership

ROUTE = "demo"
EPSILON, ALPHA = 0.05, 0.1
USUAL_PORT = 8800
# The first line of a configuration that may be overwritten.
MARK = "# Written by  bpac demo  and overwritten by the next one.\n"


@dataclass(frozen=True, slots=True)
class Place:
    """The files of a demo.

    Parameters
    ----------
    directory: where they are.
    """

    directory: Path

    @property
    def config(self) -> Path:
        """The gateway's configuration."""
        return self.directory / "gateway.toml"

    @property
    def store(self) -> Path:
        """The journal."""
        return self.directory / "bpac.db"

    @property
    def log(self) -> Path:
        """What the gateway said while it ran."""
        return self.directory / "gateway.log"

    @property
    def picture(self) -> Path:
        """What came of it, drawn."""
        return self.directory / "demo.png"

    def prepare(self) -> None:
        """Make the directory, without the files of an earlier demo; ``InputError`` if it holds somebody else's."""
        if any(sign in str(self.directory.resolve()) for sign in "?#"):
            raise InputError(f"{self.directory}: the address of a store has no room for ? and #: give another --dir")
        self.directory.mkdir(parents=True, exist_ok=True)
        if any(self.directory.iterdir()) and not self._is_ours():
            raise InputError(f"{self.directory} holds files that no demo wrote: give another --dir, or an empty one")
        # A demo that still runs here would lose its journal: then this raises.
        owner = Ownership(str(self.store.resolve()))
        owner.take()
        for path in (self.store, self.log, self.picture, *self.directory.glob(f"{self.store.name}-*")):
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
        self.config.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _is_ours(self) -> bool:
        try:
            with self.config.open(encoding="utf-8") as file:
                return file.readline() == MARK
        except (OSError, UnicodeDecodeError):
            return False


def chosen_port(wanted: int | None) -> int:
    """The port that was asked for, or else the gateway's usual one if it is free, or else any free one."""
    if wanted is not None:
        if not _is_free(wanted):
            raise BpacError(f"port {wanted} is taken: give another --port, or none and any free one is used")
        return wanted
    if _is_free(USUAL_PORT):
        return USUAL_PORT
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Like the gateway's own socket: connections that linger after an earlier demo do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _toml(value: Any) -> str:
    """A value as TOML: texts, numbers, truth values, and tables of those.

    >>> _toml({"temperature": 0.0, "chat_template_kwargs": {"enable_thinking": False}})
    '{ temperature = 0.0, chat_template_kwargs = { enable_thinking = false } }'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
