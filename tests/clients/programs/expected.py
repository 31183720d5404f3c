"""What the models say in the tests of clients; draft and expert differ in every answer."""

from typing import Any

from tests.clients.catalogue import Row

QUESTION = "What is 6 * 7?"
SUM = "What is 40 + 2? Use the tool."
KEY = "key-of-the-clients"
UNKNOWN_ROUTE = "no-such-route"


def says(who: str) -> str:
    """The text that a model answers with."""
    return f"The {who} says that it is 42."


def adds(who: str) -> dict[str, int]:
    """The numbers that a model wants added."""
    return {"a": 40, "b": 2} if who == "draft" else {"a": 41, "b": 1}


def sums_up(who: str, result: str) -> str:
    """What a model says when it has the result of the tool."""
    return f"The {who} has added: {result}"


def structured(who: str) -> dict[str, Any]:
    """The object that a model answers with."""
    return {"answer": 42, "by": who}


def place(row: Row, who: str, url: str, proxy: str) -> dict[str, Any]:
    """Where a client sends its requests, and what it must get there, as its program reads it.

    Parameters
    ----------
    row: the client and its API.
    who: which model answers, ``draft`` or ``expert``.
    url: the address of the gateway, without ``/v1``.
    proxy: the address of LiteLLM's proxy, likewise.
    """
    where = {"client": row.client, "door": row.door, "who": who, "url": url, "proxy": proxy, "route": row.route(who)}
    answers = {"text": says(who), "numbers": adds(who), "summed_up": sums_up(who, "42"), "structured": structured(who)}
    return {**where, **answers, "key": KEY, "question": QUESTION, "sum": SUM}
