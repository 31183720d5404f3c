"""``minimise = "money"``: drafts that cost more than they save are given up, except for a few probes."""

from pathlib import Path
from typing import Any

import pytest

from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway, pair

MODELS = pair(Reply("it is 42", probability=0.9), Reply("it is 42", reasoning="so it is"))


def config_for(base_url: str, store: Path, draft_input: float, minimise: str) -> dict[str, Any]:
    """A route with prices."""
    options = {"store": f"sqlite:///{store}"}
    config = settings(base_url, gateway=options, model={"price": {"input": 1.0, "output": 4.0}}, minimise=minimise)
    config["models"]["small"]["price"] = {"input": draft_input, "output": 1.0}
    return config


def reasons(gateway: RunningGateway, requests: int) -> list[str | None]:
    """Send requests, one after the other, and return why each was not drafted."""
    found = []
    for _ in range(requests):
        response = post(gateway.url, ASK)
        assert response.status == 200
        assert b"it is 42" in response.body
        found.append(dict(response.headers).get("x-bpac-unscored"))
    gateway.idle()
    return found


def test_drafts_that_cannot_pay_are_given_up(tmp_path: Path) -> None:
    """After a few requests most go to the expert directly, also after a restart, and the status says why."""
    with ScriptedServer(MODELS) as models:
        config = config_for(models.base_url, tmp_path / "bpac.db", 10.0, "money")
        with RunningGateway(config) as gateway:
            first = reasons(gateway, 20)
            later = reasons(gateway, 100)
            status = gateway.status()
        skipped = later.count("draft-costs-more")
        assert first == [None] * 20
        assert skipped > 70
        assert status["unscored"]["reasons"] == {"draft-costs-more": skipped}
        assert status["steps"] == 120 - skipped
        asked = [request.body["model"] for request in models.requests]
        assert asked.count("draft") == 120 - skipped
        assert asked.count("expert") >= skipped + 20
        with RunningGateway(config) as gateway:
            assert gateway.status()["savings"] == status["savings"]
            assert reasons(gateway, 20).count("draft-costs-more") > 10
        # Cheaper drafts pay at once: prices are not part of what was learned.
        with RunningGateway(config_for(models.base_url, tmp_path / "bpac.db", 0.1, "money")) as gateway:
            assert reasons(gateway, 20) == [None] * 20


def test_giving_up_drafts_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Drafts could be scored, they were not wanted: the game is not called "not routing", and nothing is logged."""
    monkeypatch.setattr("bpac.gateway.games.money.draft_worth.PROBES", 0.0)
    with ScriptedServer(MODELS) as models:
        config = config_for(models.base_url, tmp_path / "bpac.db", 10.0, "money")
        with RunningGateway(config) as gateway:
            assert reasons(gateway, 60)[-25:] == ["draft-costs-more"] * 25
            status = gateway.status()
    assert status["state"] != "not_routing"
    assert status["troubles"] == []
    assert not [record for record in caplog.records if "no score" in record.getMessage()]


def test_by_default_every_request_is_drafted(tmp_path: Path) -> None:
    """A route that minimises calls drafts whatever it costs, and shows that it costs money."""
    with (
        ScriptedServer(MODELS) as models,
        RunningGateway(config_for(models.base_url, tmp_path / "bpac.db", 10.0, "calls")) as gateway,
    ):
        assert reasons(gateway, 40) == [None] * 40
        assert gateway.status()["savings"]["money_saved"] < 0.0
