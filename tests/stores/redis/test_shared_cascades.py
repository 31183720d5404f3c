"""Cascades that several replicas share through a real Redis server."""

import asyncio
import random
from collections import Counter

from bpac.betting.drift.alarm import AlarmSettings
from bpac.routing.audit.audit import audit_journal
from bpac.routing.cascade.outcome import checked_outcome
from bpac.routing.cascade.recorded_walks import recorded_walk, walk_on_terms
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.decision import Decision
from bpac.routing.journal.snapshot import take_snapshot
from bpac.stores.export import journal_lines
from bpac.stores.redis.folding.fold import Fold
from bpac.stores.redis.messages import resolving
from tests.redis_servers import RedisServer
from tests.routing.cascade.gateways import Question, policy
from tests.stores.redis.shared_game import Seat, new_game, new_name, run_game, settled
from tests.stores.redis.test_shared_games import published, rebuilt


async def play(seat: Seat, question: Question, dice: random.Random) -> Decision:
    """One request, from its arrival to its outcome; questions that lose take longer."""
    slow = 3.0 if any(question.losses) else 1.0
    rules = seat.rules.cascade
    assert rules is not None
    ticket = await seat.side.arrive()
    walk = walk_on_terms(rules, ticket.terms, ticket.joined)
    question.ask(walk)
    await asyncio.sleep(dice.expovariate(200.0) * slow)
    decision = await seat.side.decide(ticket, recorded_walk(rules, walk, ticket.joined), {"at": 1.0})
    assert decision is not None
    part = decision.cascade
    assert part is not None
    if decision.call_expert:
        await asyncio.sleep(dice.expovariate(200.0) * slow)
        asked = [part.full or answer != () for answer in part.answers]
        answers: list[StageAnswer] = [a if known else () for a, known in zip(question.answers, asked, strict=True)]
        losses = [loss if known else None for loss, known in zip(question.losses, asked, strict=True)]
        stages = checked_outcome(decision, answers, losses, rules)
        accepted = decision.uncertainty < decision.threshold
        loss = (stages.losses[part.stage - 1] or 0.0) if accepted else 0.0
        seat.side.tell(resolving(decision.step, loss, {}, stages=stages))
    return decision


def test_the_journal_of_a_cascade_leads_to_what_is_published(redis: RedisServer) -> None:
    """Three replicas, rules that join, models that fail, an alarm: decisions and state follow from the journal."""

    async def run() -> None:
        address, dice = redis.address(new_name(), lease=2), random.Random(3)
        store, game = new_game(address)
        settings = CascadeRouter(0.25, policy(drift=AlarmSettings(reset_at=50.0))).settings
        seats = [Seat(address, game, settings, snapshot_every=300) for _ in range(3)]
        for seat in seats:
            await seat.sit_down()
        decisions: list[Decision] = []
        for start in range(0, 1100, 50):
            questions = [Question(dice, failing=0.05, hard=1.0 if start > 500 else 0.0) for _ in range(50)]
            decisions += await asyncio.gather(*(play(dice.choice(seats), one, dice) for one in questions))
        for seat in seats:
            await seat.side.sent()
        await settled(store, game)
        for seat in seats:
            await seat.stop_folding()
        state = rebuilt(store, game)
        route, snapshot = state.route, take_snapshot(state.route)
        # Replicas decided what stands in the journal, to the bit.
        journal = {entry.step: entry for entry, _ in store.entries(game) if isinstance(entry, Decision)}
        assert journal == {decision.step: decision for decision in decisions}
        for seat in seats:
            await seat.folder.copy.catch_up()
            assert seat.folder.state is not None
            assert take_snapshot(seat.folder.state.route) == snapshot
        in_force = Fold(state, seats[0].rules, b"", int(published(store, game, "generation")[0]), None).in_force()
        assert published(store, game, "in_force", "models") == [in_force.key, in_force.models]
        assert route.epoch > 1
        assert route.fitted_rules >= 2
        assert route.outcomes == route.expert_calls < route.step == 1100
        answered = Counter(one.cascade.stage if one.serve_draft and one.cascade else 3 for one in decisions)
        assert answered == route.answered
        audit = audit_journal(line + "\n" for line in journal_lines(store, game))
        assert audit.differences == []
        assert audit.coins.verified + audit.coins.open == route.step
        for seat in seats:
            await seat.get_up()

    run_game(run)
