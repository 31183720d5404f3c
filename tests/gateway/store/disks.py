"""Filling disks, and reading what a gateway says and what its store contains."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from bpac.routing.decision import Decision
from bpac.stores import open_store
from bpac.testing import Reply
from tests.gateway.raw import post
from tests.gateway.running import ASK, pair

MODELS = pair(Reply("42"), Reply("42"))


def ready(url: str) -> Any:
    """The status and the body of ``/readyz``."""
    got = post(url, b"", "/readyz", method="GET")
    return got.status, got.json


def logged(directory: Path) -> list[dict[str, Any]]:
    """The lines of a gateway's log."""
    return [json.loads(line) for line in (directory / "log.jsonl").read_text().splitlines()]


def decided(store: str) -> list[int]:
    """The steps that the journals of a store contain, by reading all of them."""
    reading = open_store(store, read_only=True)
    try:
        found = [entry.entry for game in reading.games() for entry in reading.entries(game)]
    finally:
        reading.close()
    return [entry.step for entry in found if isinstance(entry, Decision)]


def fill_disk(place: Path) -> Path:
    """Write a file until the disk is full; the file."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return filler


def fill(url: str, most: int = 5000) -> int:
    """Send requests until one fails; the number of answers before that."""
    for number in range(most):
        got = post(url, ASK)
        if got.status != 200:
            assert (got.status, got.json["error"]["code"]) == (503, "store_failed")
            return number
    raise AssertionError("the store did not fail")
