"""The entries of a journal: what was decided and what came of it, in one order. A router's state follows from them.

1. There is one entry per line: ``opened`` (the settings) first, then ``labelled`` rows of a warm start, then
   ``decided`` and ``resolved`` as they happen. A resolved entry without a loss is a forfeit or a refusal.
2. Where queries take tickets on arrival (MATH section 12), ``started`` and ``stopped`` mark the time in which a process
   gave them out. A ticket without a decision is ``withdrawn``; one whose draft takes too long is ``overdue``.
3. ``learned`` is a score that was fitted to the rounds before it, and bets on the queries that arrive after it.
4. ``committed`` comes before the first round of a block whose coins come from a secret key (``CommittedCoins``).
5. ``expected`` says what an audit costs from here on and how many rounds are likely to come: the exploration rate
   depends on it.
6. In an exported journal every entry carries a hash over all lines before it (see ``chain.py``), and there are lines of
   other kinds for auditors: ``game`` (what it is about), ``claim`` (the threshold and certificate that a gateway
   reported at that moment), ``revealed`` (the key of a block that is over) and ``archived`` (the entries before this
   line are in another file). No state follows from them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from bpac.errors import JournalError, TornLine
from bpac.routing.cascade.rounds import StageOutcomes, outcomes_from_json, round_from_json
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import GAME, Checker, split_head


class Opened(NamedTuple):
    """The first entry: the settings of the router, as JSON values."""

    settings: dict[str, Any]


class Labelled(NamedTuple):
    """A row of history, fed before the first live round.

    Parameters
    ----------
    uncertainties: the score of the draft, or all scores where a router has several.
    loss: its loss; none for a draft that was kept, whose loss was not seen.
    propensity, least_propensity: with which the expert was called (π, p).
    refused: the expert refused to answer.
    """

    uncertainties: tuple[float, ...]
    loss: float | None
    propensity: float = 1.0
    least_propensity: float = 1.0
    refused: bool = False


class Resolved(NamedTuple):
    """The outcome of an audited round.

    Parameters
    ----------
    step: which round.
    loss: its loss; none if it is given up and so counts as 1, or if the expert refused.
    cause: why it was given up.
    draft_served: the expert failed or refused and the caller got the draft in its place.
    refused: the expert refused to answer: a fair round (MATH section 13).
    stages: what the models of a cascade answered, and their losses; ``loss`` is that of the accepted answer.
    """

    step: int
    loss: float | None
    cause: str = ""
    draft_served: bool = False
    refused: bool = False
    stages: StageOutcomes | None = None


class Started(NamedTuple):
    """From here on queries take tickets, numbered from 1.

    Without a ``stopped`` entry since the last one, the process before died with queries under way.
    """


class Stopped(NamedTuple):
    """No query was under way: nothing was cut off."""


class Withdrawn(NamedTuple):
    """A ticket without a decision: its caller left, or its draft has no score.

    Parameters
    ----------
    ticket: its number.
    reason: why.
    """

    ticket: int
    reason: str = ""


class Overdue(NamedTuple):
    """The draft of a ticket took longer than its deadline; the ticket no longer holds up those behind it.

    Parameters
    ----------
    ticket: its number.
    """

    ticket: int


class Committed(NamedTuple):
    """The coins of the rounds from here on are fixed by a secret key, of which this is the digest.

    Parameters
    ----------
    first_step: the first round of the block.
    digest: of the key, as hexadecimal digits; the key itself is revealed when the block is over.
    """

    first_step: int
    digest: str


class Learned(NamedTuple):
    """A score that was learned from the rounds before this entry (MATH section 14), or that none is worth its share.

    Parameters
    ----------
    score: its index among the scores of the epoch, from 1; 0 is the score that was there first.
    model: the model, as JSON values; none if its share of α goes back to the score that was there first.
    rounds: how many audits it was fitted to.
    gain: how much more traffic it could accept, as a share of what the score that was there first could; an estimate.
    tickets: number of the last ticket that was given out before; their queries do not have this score.
    shared: whether audits of other games were among them.
    """

    score: int
    model: dict[str, Any] | None
    rounds: int
    gain: float
    tickets: int = 0
    shared: bool = False


class Fitted(NamedTuple):
    """A stopping rule of a cascade, which joins here: it sees queries that arrive after this entry.

    Parameters
    ----------
    rule: the rule with all its numbers.
    """

    rule: dict[str, Any]


class Expected(NamedTuple):
    """What is expected of the rounds to come: the exploration rate depends on it (MATH section 16).

    Parameters
    ----------
    audit_price: what an audit costs from here on, as a multiple of what expert calls cost otherwise.
    rounds: how many rounds are expected to come, at least.
    busy: whether the expert is busy, so that audits are made at the least rate.
    """

    audit_price: float = 1.0
    rounds: int = 0
    busy: bool = False


Entry = (
    Opened
    | Labelled
    | Decision
    | Resolved
    | Started
    | Stopped
    | Withdrawn
    | Overdue
    | Committed
    | Learned
    | Fitted
    | Expected
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
# The kinds of lines that are not entries.
CLAIM, REVEALED, ARCHIVED = "claim", "revealed", "archived"
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
