"""Redis servers that a gateway cannot use: one line says why and what to do, whichever command is run."""

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.errors import StoreError
from bpac.gateway.health.machine_checks import check_store
from bpac.routing.router import Router
from bpac.stores.redis.server.address import read_address
from bpac.stores.redis.server.connecting import BlockingRedisClient
from bpac.stores.redis.store import RedisStore
from tests.gateway.configured import settings
from tests.gateway.serving import to_toml
from tests.ports import free_port
from tests.redis_clusters import cluster_address, redis_cluster
from tests.redis_servers import RedisServer, redis_server
from tests.stores.redis.shared_game import Seat, new_game, new_name, run_game
from tests.stores.redis.test_shared_faults import play

RUN = "import sys; from bpac.cli.program import main; sys.exit(main())"


def configured(directory: Path, store: str) -> Path:
    """The configuration of a gateway with a store."""
    file = directory / "gateway.toml"
    gateway = {"store": store, "listen": f"127.0.0.1:{free_port()}"}
    file.write_text(to_toml(settings("http://127.0.0.1:9/v1", gateway=gateway)))
    return file


def test_a_gateway_does_not_start_without_enough_copies(tmp_path: Path) -> None:
    """What cannot be copied must not count as written: one line with the number and the remedy, and never ``ready``."""
    with redis_server(tmp_path) as server:
        config = configured(tmp_path, server.address("copies", wait=1, timeout=4))
        ran = subprocess.run(
            [sys.executable, "-c", RUN, "serve", str(config)],
            stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    (line,) = [line["message"] for line in lines if "copies" in line["message"]]
    assert ran.returncode == 1
    assert "cannot be used (0 of 1 copies have what was written): start or repair the copies" in line
    assert "lower wait" in line
    assert "Traceback" not in ran.stderr
    assert "ready" not in [line["message"] for line in lines]


def test_any_node_of_a_cluster_will_do(tmp_path: Path) -> None:
    """The first node of the address is down: gateways and commands use the others."""

    async def run() -> None:
        with redis_cluster(tmp_path) as nodes:
            down = RedisServer(tmp_path)  # never started
            address = cluster_address([down, *nodes], "any", lease=30, timeout=30)
            assert check_store(address).level == "ok"
            store, game = new_game(address)
            seat = Seat(address, game, Router(0.2, 0.1).settings)
            await seat.sit_down()
            await play(seat, 20)
            assert seat.counts["decided"] == 20
            await seat.get_up()
            store.close()

    run_game(run)


@pytest.mark.parametrize("command", ["serve", "status"])
def test_a_cluster_without_nodes_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """No traceback of the client, which asks for the nodes when it is made."""
    address = cluster_address([RedisServer(tmp_path), RedisServer(tmp_path)], "absent", timeout=0.5)
    config = configured(tmp_path, address)
    assert main([command, str(config)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot be used (no node of the cluster answers): check that the server runs" in line
    found = check_store(address)
    assert (found.level, "check that the server runs" in found.remedy) == ("error", True)


def test_a_server_that_is_no_cluster_is_named(redis: RedisServer) -> None:
    """The remedy is another kind of address."""
    address = read_address(cluster_address([redis], new_name()))
    with pytest.raises(StoreError, match=r"it is no cluster\): use redis:// for one server"):
        RedisStore(address)


@pytest.mark.parametrize(("version", "fine"), [("6.2.14", False), ("", False), ("7.0.0", True), ("255.255.255", True)])
def test_servers_that_are_too_old_are_refused(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch, version: str, fine: bool
) -> None:
    """Their scripts would fail in the middle of a game: the version and the remedy are said before anything begins."""
    reports = BlockingRedisClient.reports

    def older(client: BlockingRedisClient, section: str) -> list[dict[str, Any]]:
        return [{**report, "redis_version": version} for report in reports(client, section)]

    monkeypatch.setattr(BlockingRedisClient, "reports", older)
    address = redis.address(new_name())
    found = check_store(address)
    if fine:
        assert found.level == "ok"
        with closing(RedisStore(read_address(address))):
            return
    assert (found.level, "Redis 7.0 or later, or Valkey" in found.remedy) == ("error", True)
    with pytest.raises(StoreError, match=rf"too old \(version {version or 'unknown'}\); games need Redis 7.0"):
        RedisStore(read_address(address))
