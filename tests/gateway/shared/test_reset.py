"""``bpac games reset`` of a game in Redis."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.testing import ScriptedServer
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.shared.replicas import Replica
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name


def test_a_shared_game_is_reset_when_no_gateway_plays_it(
    redis: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused while a gateway runs, and where a killed one left rounds behind; then a new game begins."""

    def run(*words: str) -> Any:
        code = main(["games", *words, str(replica.config), "--json"])
        printed = capsys.readouterr()
        return json.loads(printed.out) if code == 0 else (code, printed.err)

    with ScriptedServer(KnownPair()) as models:
        name = new_name()
        replica = Replica(tmp_path / "one", models.base_url, redis.address(name, lease=1.5, timeout=30))
        try:
            replica.start()
            for number in range(5):
                assert post(replica.url, Question(number).body).status == 200
            code, error = run("reset", "--yes")
            assert (code, "gateways are playing game 1" in error) == (1, True)
            replica.end(signal.SIGTERM)
            code, error = run("reset")
            assert (code, "nothing was changed" in error) == (2, True)
            # A gateway that died is still listed; what it left behind has to be folded first.
            redis.command("HSET", f"{{{name}:1}}:replicas", "dead", "7")
            redis.command("XADD", f"{{{name}:1}}:inbox", "*", "event", "1")
            code, error = run("reset", "--yes")
            assert (code, "decided and not in its journal" in error) == (1, True)
            redis.command("DEL", f"{{{name}:1}}:inbox")
            report = run("reset", "--yes")
            assert (report["game"], report["ended"]) == (2, 1)
            assert [row["state"] for row in run("list")["games"]] == ["ended", "not begun"]
            replica.start()
            assert post(replica.url, Question(9).body).headers["x-bpac-decision"].startswith("dec-2-1-")
            replica.end(signal.SIGTERM)
        finally:
            replica.close()
    first, second = run("list")["games"]
    assert (first["state"], first["rounds"], second["rounds"]) == ("ended", 5, 1)
