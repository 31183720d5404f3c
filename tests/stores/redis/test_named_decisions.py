"""Decisions by name: of all requests at all replicas one is decided, and every replica reads the same decision."""

import asyncio
from typing import Any

import pytest

from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Fixed, Portfolio
from bpac.routing.recorded_terms import draft_scores
from bpac.routing.router import Router
from bpac.stores.redis.messages import SharedTicket, withdrawing
from bpac.stores.redis.replicas.named_decisions import HeldName, NamedDecision, NamedTerms
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import PATIENT, Seat, new_game, new_name, run_game

POLICIES: dict[str, Any] = {
    "portfolio": Portfolio(),
    "learned": Portfolio(learn=LearnedScore(features=("length",))),
    "budget": "budget",
    "by hand": Fixed(0.5, explores=0.4),
}


def named(name: str, hold: float = 600.0) -> NamedTerms:
    """A name that lasts for longer than a test."""
    return NamedTerms(name, most=100, idle=600.0, age=600.0, requests=50, hold=hold)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_decision_is_read_as_it_was_made(redis: RedisServer, policy: str) -> None:
    """To the bit, by the replica that made it and by another one; two requests at once get one ticket."""
    settings = Router(0.2, 0.1, policy=POLICIES[policy]).settings
    address = redis.address(new_name(), **PATIENT)
    _, game = new_game(address)

    async def main() -> None:
        one, two = Seat(address, game, settings), Seat(address, game, settings)
        for seat in (one, two):
            await seat.sit_down()
        for number in range(20):
            terms = named(f"session {number}")
            found = await asyncio.gather(*(seat.side.join_name(terms) for seat in (one, two, one, two)))
            (ticket,) = [one for one in found if isinstance(one, SharedTicket)]
            held = [one for one in found if isinstance(one, HeldName)]
            assert [(one.generation, one.terms) for one in held] == [(ticket.generation, ticket.terms)] * 3
            decides = (one, two)[found.index(ticket) % 2]
            features = {"length": 3.0} if decides.rules.learns else None
            draft = draft_scores(decides.rules, number / 40, 0.5, ticket.models, features)
            decision = await decides.side.decide(ticket, draft, {"at": 1.0, "reported": 0.5}, terms)
            assert decision is not None
            for seat in (one, two):
                again = await seat.side.join_name(terms)
                assert isinstance(again, NamedDecision)
                assert (again.decision, again.note["reported"]) == (decision, 0.5)
                assert again.ticket.to_text() == ticket.to_text() == held[0].to_text()
                assert again.key == decides.side.messages.key(decision.step)
                looked = await seat.side.find_name(terms.name)
                assert looked == again
        assert await one.side.find_name("nobody") is None
        for seat in (one, two):
            await seat.get_up()

    run_game(main)


def test_a_name_is_free_when_its_ticket_is(redis: RedisServer) -> None:
    """A ticket that is withdrawn, or cut off when its replica leaves, holds its name no longer; nor after its time."""
    address = redis.address(new_name(), **PATIENT)
    _, game = new_game(address)
    settings = Router(0.2, 0.1).settings

    async def main() -> None:
        one, two = Seat(address, game, settings), Seat(address, game, settings)
        for seat in (one, two):
            await seat.sit_down()
        ticket = await two.side.join_name(named("a"))
        assert isinstance(ticket, SharedTicket)
        assert isinstance(await one.side.join_name(named("a")), HeldName)
        assert await one.side.find_name("a") is None
        two.side.tell(withdrawing(ticket, "test", 1.0))
        await two.side.sent()
        assert isinstance(await two.side.join_name(named("a")), SharedTicket)
        await two.get_up()
        assert isinstance(await one.side.join_name(named("a")), SharedTicket)
        assert isinstance(await one.side.join_name(named("b", hold=-1.0)), SharedTicket)
        assert isinstance(await one.side.join_name(named("b")), SharedTicket)
        # A ticket whose time with the name was over does not take it from the one that was decided.
        late, early = [await one.side.join_name(named("d", hold)) for hold in (-1.0, 600.0)]
        assert isinstance(late, SharedTicket)
        assert isinstance(early, SharedTicket)
        draft = draft_scores(one.rules, 0.3, 0.5)
        decided = [await one.side.decide(ticket, draft, {"at": 1.0}, named("d")) for ticket in (early, late)]
        found = await one.side.find_name("d")
        assert None not in decided
        assert found is not None
        assert found.decision == decided[0] != decided[1]
        # A caller that leaves while it waits gives back the ticket that it would have got.
        leaving = asyncio.create_task(one.side.join_name(named("c")))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        while not isinstance(await one.side.join_name(named("c")), SharedTicket):
            await asyncio.sleep(0.01)
        await one.get_up()

    run_game(main)
