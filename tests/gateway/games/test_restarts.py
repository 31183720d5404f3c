"""A gateway that is stopped and restarted continues where it stopped."""

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from bpac.stores import StoreInUse, open_store
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import settings, wait_for
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway, pair
from tests.gateway.serving import Process


@pytest.mark.parametrize("damage", ["nothing", "a snapshot that is damaged", "no snapshot"])
def test_the_state_survives_a_restart(tmp_path: Path, damage: str) -> None:
    """Threshold, certificate, savings and step continue; with a damaged snapshot the journal is read instead."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "snapshot_every": 20}
    with ScriptedServer(KnownPair()) as models:
        config = settings(models.base_url, gateway=options)
        with RunningGateway(config) as gateway:
            for number in range(60):
                assert post(gateway.url, Question(number).body).status == 200
            gateway.idle()
            before = gateway.status()
        _damage(options["store"], damage)
        with RunningGateway(config) as gateway:
            assert gateway.status() == before
            assert post(gateway.url, Question(99).body).headers["x-bpac-decision"].startswith("dec-1-61-")


def _damage(address: Any, damage: str) -> None:
    store = open_store(address)
    (game,) = store.games()
    if damage != "nothing":
        snapshot = store.snapshot(game)
        assert snapshot is not None
        snapshot["router"]["state"]["step"] = 7
        claims = store.claims(game)
        store.save_snapshot(game, snapshot if damage.startswith("a") else {}, claims[-1])
    store.close()


def test_changed_terms_begin_a_new_game(tmp_path: Path) -> None:
    """Another promise, model, score or loss begins a new game; the old journal stays for auditors."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(pair(Reply("41"), Reply("42"))) as models:
        changes: list[dict[str, Any]] = [{}, {}, {"epsilon": 0.3}, {"epsilon": 0.3, "score": "perplexity"}]
        expected = [("dec-1-1-", 1), ("dec-1-2-", 1), ("dec-2-1-", 2), ("dec-3-1-", 3)]
        for change, (decision, games) in zip(changes, expected, strict=True):
            with RunningGateway(settings(models.base_url, gateway=options, **change)) as gateway:
                assert post(gateway.url, ASK).headers["x-bpac-decision"].startswith(decision)
                gateway.idle()
                assert len(gateway.service.store.games()) == games


def test_a_second_gateway_on_a_store_does_not_start(tmp_path: Path) -> None:
    """It refuses to start and says why; the first goes on."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(pair(Reply("41"), Reply("42"))) as models:
        config = settings(models.base_url, gateway=options)
        with RunningGateway(config) as gateway:
            with pytest.raises(StoreInUse, match="in use by process"):
                RunningGateway(config)
            assert post(gateway.url, ASK).status == 200


def test_feedback_is_accepted_after_a_restart(tmp_path: Path) -> None:
    """The round is open and charged before and after; feedback with its decision id closes it."""
    options = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(pair(Reply("41"), Reply("42"))) as models:
        config = settings(models.base_url, gateway=options, loss="external")
        with RunningGateway(config) as gateway:
            decision = post(gateway.url, ASK).headers["x-bpac-decision"]
            gateway.idle()
        with RunningGateway(config) as gateway:
            assert gateway.status()["owed"] == 1
            assert post(gateway.url, {"decision": decision, "loss": 0.0}, "/v1/feedback").status == 200
            assert gateway.status()["owed"] == 0
        with RunningGateway(config) as gateway:
            assert post(gateway.url, {"decision": decision, "loss": 0.0}, "/v1/feedback").status == 409


def test_a_stop_waits_for_requests_under_way(tmp_path: Path) -> None:
    """A request under way is answered, and its audit graded, before the process ends."""
    with ScriptedServer(pair(Reply("41"), Reply("42", delay=1.0))) as models:
        gateway = Process(tmp_path, models.base_url)
        gateway.start()
        got = []
        caller = threading.Thread(target=lambda: got.append(post(gateway.url, ASK)))
        caller.start()
        wait_for(lambda: len(models.requests) == 2)
        assert gateway.end(signal.SIGTERM) == 0
        caller.join()
        gateway.close()
        assert got[0].status == 200
        store = open_store(gateway.store, read_only=True)
        (game,) = store.games()
        kinds = [type(kept.entry).__name__ for kept in store.entries(game)]
        assert kinds == ["Opened", "Started", "Committed", "Decision", "Resolved", "Stopped"]
        assert len(store.claims(game)) == 1
        store.close()
