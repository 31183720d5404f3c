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

from typing import Any, NamedTuple

from bpac.routing.cascade.rounds import StageOutcomes
from bpac.routing.decision import Decision


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
# The kinds of lines that are not entries.
CLAIM, REVEALED, ARCHIVED = "claim", "revealed", "archived"
