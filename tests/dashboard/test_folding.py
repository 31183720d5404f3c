"""Live, from the journal, or from a snapshot and the rest of it: always the same history."""

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpac.dashboard.history.refusals import RefusalReason
from bpac.dashboard.history.unscored import CALLER_LEFT
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.gateway.games.live_game import LiveGame
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.router import Router
from bpac.routing.tickets.ticket import Ticket
from bpac.stores import Claim, MemoryStore, Store
from tests.gateway import configured

POLICIES: dict[str, dict[str, Any]] = {
    "alarmed": {},
    "revocable, in the shadow": {"memory": "revocable", "explore": "shadow"},
    "any": {"assume": "any"},
    "budget": {"policy": "budget"},
    "paper": {"policy": "paper"},
    "never": {"policy": "never"},
}


def route(**options: Any) -> RouteSettings:
    """A route whose outcomes come from outside, and so survive a restart."""
    data = configured.settings("http://127.0.0.1:1/v1", loss="external", max_owed=30, **{"epsilon": 0.2, **options})
    return Config.read(data).routes["homework"]


def play(game: LiveGame, seed: int, rounds: int, *, hard: float) -> None:
    """Rounds of which several are under way, with outcomes that come at once, late, never or twice.

    Some drafts have no score, some callers leave, some drafts hang, and the expert refuses some requests; the harder
    the questions, the more are lost.
    """
    dice = random.Random(seed)
    drafting: list[Ticket] = []
    waiting: list[Decision] = []
    for _ in range(rounds):
        drafting.append(game.drafting.arrive())
        while drafting and dice.random() < 0.7:
            ticket = drafting.pop(dice.randrange(len(drafting)))
            if (fate := dice.random()) < 0.1:
                game.drafting.withdraw(ticket, "no-score" if fate < 0.05 else CALLER_LEFT)
                continue
            uncertainty = dice.choice((0.0, dice.random(), 1.0))
            decision = game.decide(uncertainty, ticket, {"draft_tokens": dice.randint(1, 30)})
            if decision.call_expert:
                waiting.append(decision)
        if dice.random() < 0.01:
            game.sweep(math.inf)  # every deadline passes
        while waiting and dice.random() < 0.6:
            due = waiting.pop(dice.randrange(len(waiting)))
            note = {"expert_tokens": dice.randint(1, 300)}
            fate = dice.random()
            loss = float(dice.random() < hard) * dice.choice((1.0, 0.7))
            if fate < 0.03:
                game.outcomes.forfeit(due, "expert failed", draft_served=dice.random() < 0.5)
            elif fate < 0.06:
                game.outcomes.resolve(due, float("nan"), note)
            elif fate < 0.09:
                reason = RefusalReason.of(400 + dice.randrange(2), dice.choice(((), ("tools",))))
                game.outcomes.refuse(due, reason, draft_served=False)
            else:
                game.outcomes.resolve(due, loss, note)
            if fate < 0.02:
                game.outcomes.resolve(due, loss, note)  # given up, and known after all
    for ticket in drafting:
        game.drafting.withdraw(ticket, CALLER_LEFT)


def state(game: LiveGame) -> Any:
    """All that a dashboard rests on, as a snapshot would keep it."""
    return json.loads(json.dumps([game.history.state(), game.router.snapshot()]))


def started(store: Store, settings_: RouteSettings) -> LiveGame:
    """A game that starts on what there is."""
    game = LiveGame(store, settings_, "", settings_.alpha, snapshot_every=10**9)
    game.router._proposals._coins = SeededCoins(11)  # a gateway's own coins are never the same
    return game


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    name=st.sampled_from(sorted(POLICIES)),
    rounds=st.tuples(st.integers(0, 700), st.integers(0, 700)),
    hard=st.tuples(st.sampled_from((0.0, 0.1, 1.0)), st.sampled_from((0.0, 0.1, 1.0))),
)
def test_the_same_history_three_ways(seed: int, name: str, rounds: tuple[int, int], hard: tuple[float, float]) -> None:
    """A game that goes on, one that was stopped in the middle, and one that is read from its first entry on."""
    store, settings_ = MemoryStore(), route(**POLICIES[name])
    live = started(store, settings_)
    play(live, seed, rounds[0], hard=hard[0])
    live.journal.snapshot()
    play(live, seed + 1, rounds[1], hard=hard[1])
    from_snapshot = started(store, settings_)
    assert state(from_snapshot) == state(live)
    store.save_snapshot(live.journal.game, {}, Claim(live.router.snapshot()["entries"], {}))
    whole = started(store, settings_)
    assert state(whole) == state(live)
    assert whole.history.step == live.router.step
    assert whole.history.expert_calls == live.router.summary().expert_calls
    assert sum(whole.history.uncertainty()["called"]) == whole.history.expert_calls
    assert whole.status() == live.status()
    # And it is the router that the journal alone gives, whatever a history asks it on the way.
    alone = Router.rebuild(kept.entry for kept in store.entries(live.journal.game))
    assert alone.snapshot() == live.router.snapshot()
    # All go on alike.
    for game in (from_snapshot, whole):
        assert game.history.series(game.router, game.status().savings) == live.history.series(
            live.router, live.status().savings
        )


def test_epochs_are_among_them() -> None:
    """The streams above ring the alarm; otherwise they would not be worth much."""
    game = started(MemoryStore(), route())
    play(game, 1, 400, hard=0.0)
    play(game, 2, 700, hard=1.0)
    assert game.router.epoch > 1
    kinds = [event["kind"] for event in game.history.events()]
    assert kinds.count("epoch") == game.router.epoch - 1  # one event each, though old tickets are decided after it


@pytest.mark.parametrize("damage", ["no history", "another step", "no points", "nonsense"])
def test_snapshots_that_have_no_history(damage: str) -> None:
    """Those of an earlier version, and damaged ones: the journal is read once, and nothing is lost."""
    store, settings_ = MemoryStore(), route()
    live = started(store, settings_)
    play(live, 7, 800, hard=0.1)
    live.journal.snapshot()
    snapshot = store.snapshot(live.journal.game)
    assert snapshot is not None
    if damage == "no history":
        del snapshot["history"]
    elif damage == "another step":
        snapshot["history"]["step"] -= 1
    elif damage == "no points":
        del snapshot["history"]["points"]
    else:
        snapshot["history"]["bins"] = [["x"]]
    store.save_snapshot(live.journal.game, snapshot, store.claims(live.journal.game)[-1])
    again = started(store, settings_)
    assert state(again) == state(live)
    # The next start need not do that again.
    again.journal.snapshot()
    kept = store.snapshot(live.journal.game)
    assert kept is not None
    assert kept["history"] == json.loads(json.dumps(live.history.state()))
