"""Runs the checks of clients against a gateway and writes down which of them passed; standard library only.

A client is a class with one method per capability, which raises an exception if the client did not get the right
values. Its checks are made twice: with a route whose drafts are kept, and with one whose expert always answers.
"""

import asyncio
import inspect
import json
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tests.clients.catalogue import CAPABILITIES


class Place(NamedTuple):
    """Where a client sends its requests, and what it must get there; see ``expected.place``.

    Parameters
    ----------
    numbers: the arguments of the call of ``add``.
    summed_up: the text after the result of the tool.
    structured: the object of a structured answer.
    """

    client: str
    door: str
    who: str
    url: str
    proxy: str
    route: str
    text: str
    numbers: dict[str, int]
    summed_up: str
    structured: dict[str, Any]
    key: str
    question: str
    sum: str

    @property
    def base_url(self) -> str:
        """The base URL of clients of OpenAI's API."""
        return f"{self.url}/v1"


class Client:
    """A client of one API; subclasses have a method for each capability of the client."""

    name: ClassVar[str]
    door: ClassVar[str]

    def __init__(self, place: Place) -> None:
        self.place = place


def same(got: object, expected: object) -> None:
    """Raise an error unless the two are equal."""
    if got != expected:
        raise AssertionError(f"expected {expected!r}, got {got!r}")


def true(value: object, what: str) -> None:
    """Raise an error that says what was expected unless a value is true."""
    if not value:
        raise AssertionError(f"expected {what}, got {value!r}")


def streamed(deltas: Iterable[str], place: Place) -> None:
    """Raise an error unless the parts of a stream add up to the text; the expert's come as they are generated."""
    parts = [delta for delta in deltas if delta]
    same("".join(parts), place.text)
    # A draft that was scored as a whole is there as a whole.
    true(len(parts) > 1 or place.who == "draft", f"more than one part in {parts}")


def headers_say(headers: Any, who: str) -> None:
    """Raise an error unless the headers are those of a decision."""
    same(headers["x-bpac-answered-by"], who)
    true(headers["x-bpac-decision"].startswith("dec-"), "the id of a decision")
    true(0.0 <= float(headers["x-bpac-uncertainty"]) <= 1.0, "an uncertainty")


@contextmanager
def no_route(kind: type[Exception]) -> Iterator[None]:
    """Raise an error unless the client raises an exception of its own with the gateway's message."""
    try:
        yield
    except kind as error:
        true("there is no route" in str(error), f"the gateway's message in {error!r}")
    else:
        raise AssertionError(f"expected {kind.__name__}")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def main(clients: Iterable[type[Client]]) -> None:
    """The program: check clients in the places of a file, and write one line of JSON for each check into another."""
    plan, out = (Path(argument) for argument in sys.argv[1:])
    kinds = {(kind.name, kind.door): kind for kind in clients}
    with out.open("w", encoding="utf-8") as file:
        for place in (Place(**place) for place in json.loads(plan.read_text(encoding="utf-8"))):
            for capability, error in check(kinds[place.client, place.door], place):
                file.write(json.dumps([place.client, place.door, capability, place.who, error]) + "\n")


def check(kind: type[Client], place: Place) -> Iterator[tuple[str, str]]:
    """The capabilities of a client, each with what went wrong; empty if nothing did."""
    client: Client | None = None
    with asyncio.Runner() as runner:
        for capability in CAPABILITIES:
            if getattr(kind, capability, None) is not None:
                try:
                    client = client or kind(place)
                    result = getattr(client, capability)()
                    if inspect.iscoroutine(result):
                        runner.run(result)
                except Exception:
                    yield capability, traceback.format_exc()
                else:
                    yield capability, ""
