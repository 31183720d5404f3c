"""Snapshots: a state to start from, so that a long journal need not be read again; and their check against it."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from bpac.errors import InputError, SnapshotError
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.route import Route
from bpac.routing.settings import Settings

FORMAT = 2


def take_snapshot(route: Route) -> dict[str, Any]:
    """The state of a route, as JSON values."""
    body = {"format": FORMAT, "entries": route.entries, "settings": route.settings.to_json(), "state": route.state()}
    # Through JSON and back, so that a snapshot is the same value whether it was written to a file or not.
    plain: dict[str, Any] = json.loads(json.dumps(body))
    return plain | {"digest": _digest(plain)}


def load_snapshot(snapshot: object) -> Route:
    """The route of a snapshot."""
    if not isinstance(snapshot, Mapping) or snapshot.get("format") != FORMAT:
        raise SnapshotError(f"this is not a snapshot of format {FORMAT}: leave it out and rebuild from the journal")
    body = {key: value for key, value in snapshot.items() if key != "digest"}
    if snapshot.get("digest") != _digest(body):
        raise SnapshotError("the snapshot is damaged: leave it out and rebuild from the journal")
    try:
        route = Route(Settings.from_json(snapshot["settings"]))
    except InputError as error:
        raise SnapshotError(f"the snapshot has settings that cannot be used: {error}") from error
    route.load(snapshot["state"])
    return route


def verify_snapshot(snapshot: Mapping[str, Any], entries: Iterable[Entry]) -> None:
    """Rebuild the state from the journal and raise ``SnapshotError`` if the snapshot differs from it.

    Parameters
    ----------
    snapshot: what ``Router.snapshot`` returned.
    entries: the journal from its beginning; what comes after the snapshot is not read.
    """
    load_snapshot(snapshot)
    remaining = iter(entries)
    route = opened(next(remaining, None))
    follow(route, islice(remaining, snapshot["entries"] - 1))
    if route.entries < snapshot["entries"]:
        raise SnapshotError(f"the snapshot has seen {snapshot['entries']} entries and the journal has {route.entries}")
    folded = take_snapshot(route)
    for part in ("settings", "state"):
        for key, value in folded[part].items():
            if snapshot[part].get(key) != value:
                raise SnapshotError(f"the snapshot differs from the journal in {part}.{key}: rebuild from the journal")


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
