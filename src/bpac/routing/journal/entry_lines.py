"""Entries as lines of JSON: written, read, and checked along the chain of hashes."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from bpac.errors import JournalError, TornLine
from bpac.routing.cascade.rounds import outcomes_from_json, round_from_json
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import GAME, Checker, split_head
from bpac.routing.journal.entries import (
    ARCHIVED,
    CLAIM,
    REVEALED,
    Committed,
    Entry,
    Expected,
    Fitted,
    Labelled,
    Learned,
    Opened,
    Overdue,
    Resolved,
    Started,
    Stopped,
    Withdrawn,
)

KINDS: dict[str, type[Any]] = {
    "opened": Opened,
    "labelled": Labelled,
    "decided": Decision,
    "resolved": Resolved,
    "started": Started,
    "stopped": Stopped,
    "withdrawn": Withdrawn,
    "overdue": Overdue,
    "committed": Committed,
    "learned": Learned,
    "fitted": Fitted,
    "expected": Expected,
}
NAMES = {kind: name for name, kind in KINDS.items()}
_REMARK = re.compile(f'"(?:{GAME}|{CLAIM}|{REVEALED}|{ARCHIVED})"')

# Made once: ``json.dumps`` with options would make a new encoder for every call.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

# What each field must be in JSON. Numbers may lack their decimal point; a bool is never a number.
_TYPES: dict[str, tuple[type, ...]] = {
    "settings": (dict,),
    "uncertainties": (list,),
    "loss": (float, int, type(None)),
    "step": (int,),
    "cause": (str,),
    "uncertainty": (float, int),
    "threshold": (float, int),
    "propensity": (float, int),
    "least_propensity": (float, int),
    "call_expert": (bool,),
    "serve_draft": (bool,),
    "draft_served": (bool,),
    "epoch": (int,),
    "ticket": (int,),
    "seen": (int,),
    "refused": (bool,),
    "reason": (str,),
    "first_step": (int,),
    "digest": (str,),
    "features": (list,),
    "score": (int,),
    "model": (dict, type(None)),
    "rounds": (int,),
    "tickets": (int,),
    "gain": (float, int),
    "shared": (bool,),
    "rule": (dict,),
    "cascade": (list, type(None)),
    "stages": (list, type(None)),
    "audit_price": (float, int),
    "busy": (bool,),
}

# How the fields that JSON has as lists become values.
_READERS: dict[str, Callable[[list[Any]], Any]] = {
    "uncertainties": tuple,
    "features": lambda values: tuple(float(value) if type(value) is int else value for value in values),
    "cascade": round_from_json,
    "stages": outcomes_from_json,
}


def entry_to_json(entry: Entry) -> str:
    """One line of a journal, without its line break.

    >>> entry_to_json(Resolved(step=3, loss=0.5))
    '{"entry":"resolved","step":3,"loss":0.5}'
    """
    return _encode(entry_fields(entry))


def entry_fields(entry: Entry) -> dict[str, Any]:
    """The JSON object of an entry: its kind, and all fields that differ from their defaults.

    >>> entry_fields(Resolved(step=3, loss=0.5))
    {'entry': 'resolved', 'step': 3, 'loss': 0.5}
    """
    kind = type(entry)
    written: dict[str, Any] = {"entry": NAMES[kind]}
    defaults = kind._field_defaults
    for key, value in zip(kind._fields, entry, strict=True):
        if key not in defaults or value != defaults[key]:
            written[key] = value
    return written


def entry_from_json(line: str, number: int = 1) -> Entry:
    """The entry on a line of a journal.

    Parameters
    ----------
    line: the text.
    number: the number of the line, for the error message.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"line {number} is not JSON ({error}): restore it from a copy") from error
    name = data.pop("entry", None) if isinstance(data, dict) else None
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        kinds = ", ".join(KINDS)
        raise JournalError(f"line {number} is not a journal entry: it must be an object with entry = {kinds}")
    for key in kind._fields:
        if key not in data and key not in kind._field_defaults:
            raise JournalError(f"line {number} lacks {key!r}: restore it from a copy")
    for key, value in data.items():
        if key == "head":
            raise JournalError(
                f"line {number} was rewritten since it was exported: its hash must stand last, as written"
            )
        if key not in kind._fields:
            raise JournalError(
                f"line {number} has the unknown key {key!r}: it was written by another version or another program"
            )
        if type(value) not in _TYPES[key]:
            raise JournalError(f"line {number}: {key} cannot be {value!r}")
    for key, read in _READERS.items():
        if data.get(key) is not None:
            try:
                data[key] = read(data[key])
            except (TypeError, ValueError) as error:
                raise JournalError(f"line {number}: {key} cannot be {data[key]!r}") from error
    entry: Entry = kind(**data)
    return entry


def remark_from_json(text: str) -> tuple[str, dict[str, Any]] | None:
    """Kind and values of a line of an exported journal that is not an entry; none if it is one, or cannot be read.

    >>> remark_from_json('{"entry":"claim","entries":7,"threshold":0.25}')
    ('claim', {'entries': 7, 'threshold': 0.25})
    >>> remark_from_json('{"entry":"resolved","step":3,"loss":0.5}')
    """
    # Entries have their own reader, whose errors say what is wrong with them.
    if _REMARK.search(text) is None:
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kind = data.pop("entry", None) if isinstance(data, dict) else None
    return (kind, data) if kind in (GAME, CLAIM, REVEALED, ARCHIVED) else None


def read_journal(lines: Iterable[str], torn: Literal["refuse", "drop"] = "refuse") -> Iterator[Entry]:
    """The entries of a journal, in order, without the lines for auditors.

    Parameters
    ----------
    lines: the lines of a file, with their line breaks. If they carry hashes, they are checked.
    torn: what to do about a last line that was cut off. Nothing had been sent when it was being
        written, so ``drop`` is safe after a crash; ``refuse`` (default) raises an error that says so.
    """
    cut_off = ""
    number = 0
    chain = Checker()
    for number, line in enumerate(lines, start=1):
        if cut_off:
            raise JournalError(f"line {number - 1} is cut off, and is not the last: restore it from a copy")
        if not line.endswith("\n"):
            cut_off = line
        elif (entry := _checked_entry(line, number, chain)) is not None:
            yield entry
    if cut_off and torn == "refuse":
        raise TornLine(
            f"line {number} is cut off: {cut_off[:60]!r}. Nothing was served on it, "
            'so it may be dropped: read with torn="drop"'
        )


def _checked_entry(line: str, number: int, chain: Checker) -> Entry | None:
    """The entry on a line; none if it is a remark."""
    text, head = split_head(line)
    remark = remark_from_json(text)
    entry = entry_from_json(text, number) if remark is None else None
    try:
        if entry is not None:
            chain.entry(text, head)
        elif remark is not None and remark[0] == GAME:
            chain.game(text, head)
    except JournalError as error:
        raise JournalError(f"line {number} {error}: restore it from a copy") from error
    return entry
