"""A ticket: a query's place in the order of arrival (MATH section 12)."""

from typing import NamedTuple


class Ticket(NamedTuple):
    """What was in force when a query arrived. Its decision is made on these terms, however long its draft takes.

    Parameters
    ----------
    number: place of the query among those that arrived in its epoch since the router started, from 1.
    epoch: the epoch in which it arrived.
    threshold: the threshold in force at its arrival (û).
    rate: the exploration rate in force at its arrival (ρ).
    score: index of the score in use, where a router has several.
    seen: entries in the journal at its arrival, so that an auditor can compute which threshold was in force.
    """

    number: int
    epoch: int
    threshold: float
    rate: float
    score: int
    seen: int
