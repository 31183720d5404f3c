"""Segments of a route learn scores together, also when different gateways fold their games."""

from contextlib import closing

from bpac.routing.audit.audit import audit_journal
from bpac.routing.journal.entries import Learned
from bpac.stores import open_store
from bpac.stores.export import journal_lines
from bpac.testing import ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.games.test_learned_scores import LEARN, answers, ask
from tests.gateway.running import RunningGateway
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name


def scores_of(gateway: RunningGateway) -> dict[str, list[bool]]:
    """For each segment, which of its scores are shared."""
    games = get_json(f"{gateway.url}/v1/status")["routes"]["homework"]
    return {game["segment"]: [score["shared"] for score in game["scores"]] for game in games}


def test_segments_learn_together_through_redis(redis: RedisServer) -> None:
    """Neither segment has enough audits alone: both get one score, a new segment gets it, and wealth is not shared."""
    shared = {"store": redis.address(new_name(), lease=0.5)}
    with ScriptedServer(answers) as models:
        config = settings(models.base_url, gateway=shared, learn=LEARN, segment_by="metadata:team")
        with RunningGateway(config) as one, RunningGateway(config) as other:
            # Each gateway folds the game whose first request it gets.
            for number in range(26):
                ask(one, number, "left")
                ask(other, number + 100, "right")
            folders = {game["segment"]: game["folding"] for game in one.service.shared_games()}
            assert folders == {"left": True} or folders["right"] is False
            wait_for(lambda: scores_of(one)["left"] == scores_of(other)["right"] == [False, True])
            ask(other, 300, "new")
            wait_for(lambda: scores_of(other)["new"] == [False, True])
            ask(one, 301, "left")
        # The score is there after a restart, and nothing is learned twice.
        with RunningGateway(config) as gateway:
            for segment in ("left", "right", "new"):
                ask(gateway, 400, segment)
            assert all(found == [False, True] for found in scores_of(gateway).values())
        with closing(open_store(shared["store"], read_only=True)) as store:
            learned = {}
            for game in store.games():
                (learned[game.segment],) = (s.entry for s in store.entries(game) if isinstance(s.entry, Learned))
                audit = audit_journal(f"{line}\n" for line in journal_lines(store, game))
                assert audit.differences == []
        assert len({repr(entry.model) for entry in learned.values()}) == 1
        assert {entry.rounds for entry in learned.values()} <= set(range(40, 53))
