"""The connection of a front to its owner: an owner that does not answer, does not read, or is lost."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.workers.front import owner_link
from bpac.gateway.workers.front.owner_errors import OwnerLate, OwnerLost
from bpac.gateway.workers.front.owner_link import OwnerLink
from bpac.gateway.workers.front.remote_desk import GameFacts, RemoteDesk
from bpac.gateway.workers.link import FULL, Message, ProcessLink
from bpac.routing.decision import Decision
from bpac.routing.tickets.ticket import Ticket

TICKET = Ticket(1, 1, 0.5, 0.3, 0, 7)
AUDIT = Decision(3, 0.2, 0.5, 0.3, 0.3, call_expert=True, serve_draft=False)


class FakeOwner:
    """An owner that answers as it is told to.

    Parameters
    ----------
    answers: replies by kind of question; a question without one is not answered.
    """

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = {"hello": {}, **answers}
        self.got: list[Message] = []
        self.links: list[ProcessLink] = []

    def connected(self) -> ProcessLink:
        """A front has connected."""
        self.links.append(ProcessLink(self._receive, lambda _: None))
        return self.links[-1]

    def _receive(self, messages: list[Message]) -> None:
        for message in messages:
            self.got.append(message)
            kind, number, *_ = message
            if number and kind in self.answers:
                self.answer(number, self.answers[kind])

    def answer(self, number: int, value: Any) -> None:
        """Reply to a question."""
        self.links[-1].send([number, 0, value])

    def kinds(self) -> list[str]:
        """What was said."""
        return [message[0] for message in self.got]


@asynccontextmanager
async def connected(path: Path, **answers: Any) -> AsyncIterator[tuple[OwnerLink, FakeOwner]]:
    """A front's link to a fake owner."""
    owner = FakeOwner(answers)
    address = str(path / "desk.sock")
    server = await asyncio.get_running_loop().create_unix_server(owner.connected, address)

    async def welcome(_: dict[str, Any]) -> None:
        pass

    link = OwnerLink(address, list, welcome, lambda kind, values: None)
    await link.start()
    try:
        yield link, owner
    finally:
        await link.stop()
        for one in owner.links:
            one.close("the end")
        server.close()
        await asyncio.sleep(0.05)


def run(work: Callable[[], Awaitable[None]]) -> None:
    """Run in an event loop of its own."""

    async def main() -> None:
        await work()

    asyncio.run(main())


def desk_of(link: OwnerLink) -> RemoteDesk:
    """A desk of game 1."""
    return RemoteDesk(link, GameFacts(1, "", (), False), cascade=False)


def test_a_decision_that_comes_too_late_is_forfeited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request goes to the expert; when the owner has decided after all, nothing is carried out."""
    monkeypatch.setattr(owner_link, "PATIENCE", 0.05)
    monkeypatch.setattr(owner_link, "LOOK_EVERY", 0.02)
    carried_out: list[Any] = []

    async def work() -> None:
        async with connected(tmp_path) as (link, owner):
            assert await desk_of(link).decide(0.2, TICKET, {}, carried_out.append) is None
            kind, number, *_ = owner.got[-1]
            assert kind == "decide"
            owner.answer(number, [AUDIT.to_list(), "dec-1-3-x", True])
            while "forfeit" not in owner.kinds():
                await asyncio.sleep(0.005)
            assert owner.got[-1][2:4] == [1, AUDIT.step]

    run(work)
    assert carried_out == []


def test_a_decision_is_carried_out_although_its_caller_has_left(tmp_path: Path) -> None:
    """Exactly once, when the reply comes: from the decision on the round counts."""
    carried_out: list[Any] = []

    async def work() -> None:
        async with connected(tmp_path) as (link, owner):
            task = asyncio.create_task(desk_of(link).decide(0.2, TICKET, {}, carried_out.append))
            while "decide" not in owner.kinds():
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            owner.answer(owner.got[-1][1], [AUDIT.to_list(), "dec-1-3-x", True])
            while not carried_out:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.02)

    run(work)
    assert [decided.decision for decided in carried_out] == [AUDIT]


def test_a_ticket_that_comes_too_late_is_withdrawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its request has failed like one that finds the store failed."""
    monkeypatch.setattr(owner_link, "PATIENCE", 0.05)
    monkeypatch.setattr(owner_link, "LOOK_EVERY", 0.02)

    async def work() -> None:
        async with connected(tmp_path) as (link, owner):
            with pytest.raises(OwnerLate):
                await desk_of(link).arrive(0)
            owner.answer(owner.got[-1][1], [list(TICKET), False, None])
            while "withdraw" not in owner.kinds():
                await asyncio.sleep(0.005)
            assert owner.got[-1][2:] == [1, list(TICKET), "error"]

    run(work)


def test_questions_fail_when_the_owner_is_lost_and_others_are_answered_by_the_next(tmp_path: Path) -> None:
    """A decision under way is none; a ticket is asked for again."""

    async def work() -> None:
        async with connected(tmp_path) as (link, owner):
            deciding = asyncio.create_task(desk_of(link).decide(0.2, TICKET, {}, lambda decided: decided))
            refusing = asyncio.create_task(desk_of(link).forfeit(AUDIT, "expert failed"))
            arriving = asyncio.create_task(desk_of(link).arrive(0))
            while not {"decide", "forfeit", "arrive"} <= set(owner.kinds()):
                await asyncio.sleep(0.005)
            owner.answers["arrive"] = [list(TICKET), False, None]
            owner.links[-1].close("lost")
            assert await deciding is None
            with pytest.raises(OwnerLost):
                await refusing
            assert (await arriving).ticket == TICKET
            assert len(owner.links) == 2

    run(work)


def test_a_link_that_the_owner_does_not_read_takes_no_more_requests(tmp_path: Path) -> None:
    """What waits in memory is bounded: new requests fail at once instead of waiting."""

    async def work() -> None:
        async with connected(tmp_path, arrive=[list(TICKET), False, None]) as (link, owner):
            assert (await desk_of(link).arrive(0)).ticket == TICKET
            transport = owner.links[-1]._transport
            assert transport is not None
            transport.pause_reading()
            for _ in range(3):
                link.tell("drafted", 1, b"x" * FULL)
            await asyncio.sleep(0.05)
            with pytest.raises(OwnerLate, match="does not read"):
                await desk_of(link).arrive(0)
            transport.resume_reading()

    run(work)


def test_texts_and_numbers_that_cannot_be_sent_are_replaced() -> None:
    """Half of a surrogate pair, which models do send, and numbers beyond 64 bits end no connection."""

    async def work() -> None:
        got: list[Message] = []
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        _, sender = await loop.create_unix_connection(lambda: ProcessLink(got.extend, lambda _: None), sock=ours)
        await loop.create_unix_connection(lambda: ProcessLink(got.extend, lambda _: None), sock=theirs)
        sender.send(["a", 0, {"text": "\ud83d", "n": 2**70, "list": ("é", -(2**70))}])
        while not got:
            await asyncio.sleep(0.005)
        assert got == [["a", 0, {"text": "?", "n": 2**63 - 1, "list": ["é", -(2**63)]}]]
        sender.close("done")
        await asyncio.sleep(0.01)

    run(work)
