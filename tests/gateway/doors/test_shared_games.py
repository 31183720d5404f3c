"""The doors of a gateway whose games are in Redis."""

from contextlib import closing
from pathlib import Path

from bpac.testing import ScriptedServer
from tests.gateway.configured import wait_for
from tests.gateway.doors.opened import DRAFT, EXPERT
from tests.gateway.doors.test_every_door import BODIES, DOORS
from tests.gateway.raw import post
from tests.gateway.running import pair
from tests.gateway.shared.replicas import Replica
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name


def test_requests_at_every_door_are_rounds_of_one_game(redis: RedisServer, tmp_path: Path) -> None:
    """Each is decided and journalled, whole and streamed."""
    address = redis.address(new_name())
    with (
        ScriptedServer(pair(DRAFT, EXPERT)) as models,
        closing(Replica(tmp_path / "one", models.base_url, address)) as gateway,
    ):
        gateway.start()
        decisions = [
            post(gateway.url, BODIES[path] | {"stream": stream}, path).headers["x-bpac-decision"]
            for path in DOORS
            for stream in (False, True)
        ]
        assert len(set(decisions)) == 6
        assert all(decision.startswith("dec-") for decision in decisions)
        wait_for(lambda: gateway.game()["steps"] == 6)
