"""Notices about the whole gateway, above every view: lost journals and refused callers."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from bpac.dashboard.lost_journals import MOST_LISTED, lost_journals
from bpac.gateway.http.connections import connections, protocol
from bpac.gateway.http.connections.connections import Refusal
from bpac.gateway.telemetry.failures.rejections import REMEDIES
from bpac.stores.store import Game, LostEntries
from bpac.testing import Reply, ScriptedServer
from tests.dashboard.browser import DESKTOP, PHONE, Visit
from tests.dashboard.traffic import get
from tests.gateway.configured import get_json, settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair

PAIR = pair(Reply("41"), Reply("42"))
SIZES = {"desktop": DESKTOP, "phone": PHONE}


def refuse(gateway: RunningGateway, host: str = "evil.example") -> None:
    """Send a request that is refused for its host name."""
    assert post(gateway.url, b"", "/v1/status", method="GET", headers={"Host": host}).status == 403


def play(config: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Start a gateway and send requests; returns the document of its dashboard before them."""
    with RunningGateway(config) as gateway:
        shown = get(gateway, "/data").json
        for _ in range(rounds):
            post(gateway.url, ASK)
        gateway.idle()
    assert isinstance(shown, dict)
    return shown


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway whose store was replaced by an older copy before its start."""
    directory = tmp_path_factory.mktemp("lost")
    path, copy = directory / "bpac.db", directory / "copy.db"
    with ScriptedServer(PAIR) as models:
        config = settings(models.base_url, gateway={"store": f"sqlite:///{path}"})
        play(config, 3)
        shutil.copy(path, copy)
        play(config, 4)
        shutil.copy(copy, path)
        with RunningGateway(config) as gateway:
            yield gateway


def test_a_lost_journal_is_in_the_document(lost: RunningGateway) -> None:
    """Which route and game, how many entries are missing, which game goes on, and what to do."""
    (loss,) = get_json(f"{lost.url}/v1/status")["losses"]
    missing = loss["acknowledged"] - loss["entries"]
    assert missing > 0
    for path in ("/data", "/data?game=2"):
        shown = get(lost, path).json["lost_journals"]
        assert shown["count"] == 1
        assert shown["journals"] == [
            {
                **loss,
                "route": "homework",
                "segment": "",
                "text": f"the last {missing} of {loss['acknowledged']} acknowledged entries of game 1 are missing",
                "now": "game 2 continues in its place",
            }
        ]
        assert "no certificate covers them" in shown["cost"]
        for part in ("who deleted or replaced files", "put the copy back", "?sync=full"):
            assert part in shown["remedy"]


@pytest.mark.parametrize("size", SIZES)
def test_a_lost_journal_is_a_warning(browser: Browser, lost: RunningGateway, size: str) -> None:
    """It stands above the verdict with its remedy; once folded, it stays folded, but visible, after a reload."""
    with Visit(browser, SIZES[size]) as visit:
        visit.page.goto(f"{lost.url}/dashboard")
        warning = visit.page.get_by_role("region", name="Lost journals")
        title, remedy = warning.locator("summary"), warning.get_by_text("What to do:")
        expect(title).to_have_text("1 journal lost acknowledged entries")
        expect(warning.locator("li")).to_contain_text("homework: the last ")
        expect(warning.locator("li")).to_contain_text("game 1 are missing; game 2 continues in its place.")
        expect(remedy).to_be_visible()
        visit.check_accessibility()
        title.click()
        expect(remedy).to_be_hidden()
        # The browser reports that it was folded a moment later, and a reload before that would lose it.
        visit.page.wait_for_function("Object.values(localStorage).some((kept) => kept.length > 0)")
        visit.page.reload()
        expect(title).to_be_visible()
        expect(remedy).to_be_hidden()


def test_putting_the_complete_copy_back(tmp_path: Path) -> None:
    """As the remedy says: the old game goes on with all its rounds, and those served since are missing instead."""
    path, older, complete = (tmp_path / name for name in ("bpac.db", "older.db", "complete.db"))
    with ScriptedServer(PAIR) as models:
        config = settings(models.base_url, gateway={"store": f"sqlite:///{path}"})
        play(config, 1)
        shutil.copy(path, older)
        play(config, 1)
        shutil.copy(path, complete)
        shutil.copy(older, path)
        (game,) = play(config, 1)["games"]
        assert (game["game"], game["steps"]) == (2, 0)
        shutil.copy(complete, path)
        shown = play(config, 0)
    (game,), (journal,) = shown["games"], shown["lost_journals"]["journals"]
    assert (game["game"], game["steps"], journal["game"]) == (1, 2, 2)


def test_where_a_lost_game_stood() -> None:
    """Whether its traffic goes on, and where; a game of which nothing is left has no route; many are counted."""
    games = [Game(number, "homework", segment, "") for number, segment in enumerate(("anna", "ben", "anna"), 1)]
    losses = [LostEntries(number, 5, 5, "") for number in (1, 2, 4)]
    shown = lost_journals(losses, games, [games[2]])
    assert shown is not None
    assert [(one["route"], one["segment"], one["now"]) for one in shown["journals"]] == [
        (None, "", "the whole journal is missing, including the name of its route"),
        ("homework", "ben", "no game serves this traffic now"),
        ("homework", "anna", "game 3 continues in its place"),
    ]
    assert shown["journals"][2]["text"] == "entry 5 of game 1 is not the one that was acknowledged"
    many = lost_journals(losses * 20, games, games)
    assert many is not None
    assert (many["count"], len(many["journals"])) == (60, MOST_LISTED)
    assert lost_journals([], games, games) is None


def test_every_rejection_has_a_remedy() -> None:
    """Each reason that the connections count has one, and each other remedy is for the code of an error."""
    limits = [value for part in (protocol, connections) for value in vars(part).values() if isinstance(value, Refusal)]
    reasons = {refusal.reason for refusal in limits}
    checks = {
        "force_not_allowed", "host_not_allowed", "insufficient_quota", "invalid_api_key", "missing_role", "not_json",
        "not_yours", "origin_not_allowed", "rate_limit_exceeded", "too_deep", "too_large", "too_many_tickets",
        "too_many_values", "unsupported", "untranslatable",
    }  # fmt: skip
    assert REMEDIES.keys() == checks | reasons
    assert not checks & reasons, "or a request would be counted twice"


def test_refused_callers(browser: Browser) -> None:
    """Hidden while there are none; then the counts of the status, by reason, with what to do about each."""
    with Running(PAIR) as (gateway, _), Visit(browser, PHONE) as visit:
        assert get(gateway, "/data").json["callers"]["refused"] == []
        visit.page.goto(f"{gateway.url}/dashboard")
        place = visit.page.get_by_role("region", name="Refused callers")
        expect(visit.page.locator("h1")).to_have_text("homework ")
        expect(place).to_be_hidden()
        for _ in range(3):
            refuse(gateway)
        assert post(gateway.url, b"{}", headers={"Content-Type": "text/plain"}).status == 415
        shown = get(gateway, "/data?game=1").json["callers"]
        assert {one["reason"]: one["count"] for one in shown["refused"]} == gateway.service.rejections.counts
        assert [one["reason"] for one in shown["refused"]] == ["host_not_allowed", "not_json"]
        assert shown["connections"] == get_json(f"{gateway.url}/v1/status")["callers"]["connections"]
        expect(place).to_contain_text(
            "4 requests refused by a limit or a check since the gateway started: 3 host_not_allowed, 1 not_json"
        )
        place.locator("summary").click()
        expect(place.get_by_text("have callers send Content-Type: application/json")).to_be_visible()
        assert visit.value("callers.refused.host_not_allowed") == 3
        visit.check_accessibility()
