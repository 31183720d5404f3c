"""The checks of clients can fail: wrong values are found, and one failure does not hide the others."""

from typing import Any

import pytest

from bpac.testing import Reply, Request
from tests.clients.catalogue import ROWS, Cell, Row
from tests.clients.models import answer
from tests.clients.programs import openai_python
from tests.clients.programs.checking import Client, Place, check, headers_say, no_route
from tests.clients.programs.expected import place
from tests.clients.table import page
from tests.gateway.running import Running


def somewhere(url: str = "", who: str = "draft") -> Place:
    """A place whose route is that of the tests of gateways."""
    row = Row("openai (Python)", "chat", "", "", routes=("homework", "homework"))
    return Place(**place(row, who, url, ""))


def test_answers_of_the_wrong_model_are_found() -> None:
    """Where the expert answers and the draft's answers are expected, every check but that of errors fails."""
    with Running(answer, policy="always", score={"name": "perplexity", "otherwise": 0.5}) as (gateway, _):
        right = dict(check(openai_python.Chat, somewhere(gateway.url, "expert")))
        wrong = dict(check(openai_python.Chat, somewhere(gateway.url, "draft")))
        gateway.idle()
    assert set(right.values()) == {""}
    assert [capability for capability, error in wrong.items() if not error] == ["error"]


def test_answers_without_the_second_turn_are_found() -> None:
    """A model that repeats its call instead of answering to the result of the tool fails the check of tools."""

    def stubborn(request: Request) -> Reply:
        messages = [message for message in request.body["messages"] if message["role"] == "user"]
        return answer(Request(request.number, {**request.body, "messages": messages}))

    with Running(stubborn, policy="never", score={"name": "perplexity", "otherwise": 0.5}) as (gateway, _):
        found = dict(check(openai_python.Chat, somewhere(gateway.url)))
    assert [capability for capability, error in found.items() if error] == ["tools_whole", "tools_streamed"]


def test_a_failure_does_not_hide_other_checks() -> None:
    """Each capability is checked and reported by itself; coroutines are run, and exceptions keep their messages."""

    class Broken(Client):
        name, door = "broken", "chat"

        def text(self) -> None:
            raise RuntimeError("it has no text")

        async def stream(self) -> None:
            raise RuntimeError("it has no stream")

        async def structured(self) -> None:
            pass

    found = dict(check(Broken, somewhere()))
    assert "it has no text" in found["text"]
    assert "it has no stream" in found["stream"]
    assert found["structured"] == ""
    assert set(found) == {"text", "stream", "structured"}


def test_a_client_that_cannot_be_made_fails_all_its_checks() -> None:
    """It is not left out, and other clients of its program are checked."""

    class Unmade(openai_python.Chat):
        def __init__(self, place: Place) -> None:
            raise RuntimeError("it needs another version")

    found = dict(check(Unmade, somewhere()))
    assert set(found) == set(ROWS[0].can)
    assert all("it needs another version" in error for error in found.values())


@pytest.mark.parametrize(
    "headers",
    [
        {"x-bpac-answered-by": "expert", "x-bpac-decision": "dec-1-1", "x-bpac-uncertainty": "0.5"},
        {"x-bpac-answered-by": "draft", "x-bpac-decision": "unscored", "x-bpac-uncertainty": "0.5"},
        {"x-bpac-answered-by": "draft", "x-bpac-decision": "dec-1-1", "x-bpac-uncertainty": "nan"},
    ],
)
def test_headers_must_be_those_of_a_decision(headers: Any) -> None:
    """The wrong model, no decision and no uncertainty are found."""
    with pytest.raises(AssertionError):
        headers_say(headers, "draft")


def test_an_error_must_be_the_clients_own() -> None:
    """No exception, another exception and another message are found."""
    with pytest.raises(AssertionError), no_route(ValueError):
        pass
    with pytest.raises(AssertionError), no_route(ValueError):
        raise ValueError("connection refused")
    with pytest.raises(KeyError), no_route(ValueError):
        raise KeyError("there is no route")


def test_the_table_says_what_does_not_work() -> None:
    """A failed check, or one that was not made, is a no in the table."""
    row = ROWS[0]
    errors = dict.fromkeys(row.cells(), "")
    line = next(line for line in page(errors).splitlines() if line.startswith(f"| {row.client} | {row.door} "))
    assert line.count("| yes ") == 6
    for cell in (Cell(row.client, row.door, "text"), Cell(row.client, row.door, "tools_streamed")):
        for changed in ({**errors, cell: "wrong"}, {key: value for key, value in errors.items() if key != cell}):
            lines = page(changed).splitlines()
            broken = next(line for line in lines if line.startswith(f"| {row.client} | {row.door} "))
            assert (broken.count("| yes "), broken.count("| no ")) == (5, 1)
