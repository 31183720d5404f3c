"""Gateways that share games, and the processes of a gateway: what the page shows, and the troubles."""

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from bpac.dashboard.remedies import SEVERAL
from bpac.dashboard.replicas import MOST_LISTED, MUCH_LAG, process_troubles, replica_troubles, replicas_document
from bpac.gateway.shared.journal_watch import JournalWatch
from bpac.testing import Reply
from tests.dashboard.browser import DESKTOP, PHONE, Visit
from tests.dashboard.traffic import get
from tests.gateway.running import Running, pair

SIZES = {"desktop": DESKTOP, "phone": PHONE}
GAME: dict[str, Any] = {
    "outside": {"drafts": 0, "unreported": 0},
    "route": "homework", "segment": "", "game": 1, "replica": "a1", "folder": "b2", "folding": False, "replicas": 3,
    "lag": 0, "entries_per_second": 12.5, "error": None, "behind_since": None, "seconds_still": 0.0, "lease": 5.0,
}  # fmt: skip
STILL = {**GAME, "game": 2, "segment": "anna", "lag": 7, "behind_since": 50.0, "seconds_still": 15.0}
SLOW = {**GAME, "game": 3, "segment": "ben", "lag": MUCH_LAG, "behind_since": 70.0, "folder": "a1", "folding": True}
FRONT = {"pid": 71, "connections": 4, "in_flight": 2, "drafting": 1, "audits": 0, "current_configuration": True}
WORKERS: dict[str, Any] = {
    "wanted": 2,
    "fronts": [{"front": 0, **FRONT}],
    "lost": 5,
    "lost_fronts": [{"front": 1, "restarts": 5, "lately": 4, "since": 1_700_000_000.0}],
    "owner": {"pid": 70, "restarts": 1, "lately": 1, "since": 1_700_000_000.0},
}


def test_one_picture_of_all_gateways() -> None:
    """The sums over all games, and the games that are furthest behind; nothing if this gateway is alone."""
    shown = replicas_document([GAME, STILL, SLOW])
    assert shown is not None
    assert (shown["replicas"], shown["games"], shown["folding"], shown["lag"]) == (3, 3, 1, MUCH_LAG + 7)
    assert shown["entries_per_second"] == 37.5
    assert [(game["game"], game["folded"]) for game in shown["listed"]] == [(3, True), (2, False), (1, True)]
    many = replicas_document([{**GAME, "game": number, "entries_per_second": None} for number in range(100)])
    assert many is not None
    assert (len(many["listed"]), many["entries_per_second"]) == (MOST_LISTED, None)
    assert replicas_document([]) is replicas_document([{**GAME, "replicas": 1}]) is None


def test_troubles_of_shared_games() -> None:
    """A game that nobody folds and one that is folded too slowly, with what to do; not while Redis is gone."""
    still, slow = replica_troubles([GAME, STILL, SLOW])
    assert still.what == "route homework: no gateway folds the game: 7 decided rounds are not in the journal yet"
    assert (still.since, still.remedy) == (50.0, SEVERAL["no folder"])
    assert "too slow: 1,000 decided rounds" in slow.what
    assert (slow.since, slow.remedy) == (70.0, SEVERAL["lag"])
    (both,) = replica_troubles([STILL, {**STILL, "game": 4}])
    assert both.what.startswith("route homework in 2 segments: no gateway folds the game: 14")
    assert replica_troubles([{**STILL, "error": "Redis is gone"}]) == []


def test_troubles_of_processes() -> None:
    """Processes that are away, and those that end again and again; ends that are long ago are none."""
    missing, dying = process_troubles(WORKERS)
    assert missing.what.startswith("1 of 2 front processes are not connected")
    assert dying.what == "front process 1 keeps ending: 4 times in the latest minutes, 5 times in all"
    assert (dying.since, dying.remedy) == (1_700_000_000.0, SEVERAL["keeps ending"])
    owner = {**WORKERS["owner"], "restarts": 3, "lately": 3}
    healthy = {"fronts": [{"front": 0}, {"front": 1}], "lost_fronts": [{"front": 1, "restarts": 9, "lately": 0}]}
    (trouble,) = process_troubles({**WORKERS, **healthy, "owner": owner})
    assert trouble.what.startswith("the owner process keeps ending: 3 times")
    assert process_troubles({**WORKERS, **healthy}) == []


def test_a_journal_that_stands_still() -> None:
    """Only rounds that wait count, and from the last entry on; the speed is that of the latest ten seconds."""
    now = [0.0]
    watch = JournalWatch(lambda: now[0], lambda: 1000.0 + now[0])
    for second in range(60):
        now[0] = float(second)
        watch.look(entries=min(second, 40) * 5, lag=0 if second < 30 else 3)
    assert (watch.behind_since, watch.seconds_still, watch.entries_per_second) == (1030.0, 19.0, 0.0)
    now[0] = 60.0
    watch.look(entries=210, lag=1)
    assert (watch.behind_since, watch.seconds_still, watch.entries_per_second) == (1030.0, 0.0, 1.0)
    watch.look(entries=210, lag=0)
    assert watch.behind_since is None


@pytest.mark.parametrize("size", SIZES)
def test_the_page(browser: Browser, size: str) -> None:
    """Hidden for a gateway that is alone; then who folds, the lag and the speed, and every process."""
    with Running(pair(Reply("41"), Reply("42"))) as (gateway, _), Visit(browser, SIZES[size]) as visit:
        document = get(gateway, "/data").json
        assert document["replicas"] is document["workers"] is None
        visit.page.route("**/dashboard/data*", lambda route: route.fulfill(json=document))
        visit.page.goto(f"{gateway.url}/dashboard")
        shared = visit.page.get_by_role("region", name="Gateways that share games")
        processes = visit.page.get_by_role("region", name="Processes")
        expect(visit.page.locator("h1")).to_have_text("homework ")
        expect(shared).to_be_hidden()
        expect(processes).to_be_hidden()
        document["replicas"], document["workers"] = replicas_document([GAME, STILL, SLOW]), WORKERS
        document["troubles"] = [one.to_json() for one in replica_troubles([GAME, STILL, SLOW])]
        document["troubles"] += [one.to_json() for one in process_troubles(WORKERS)]
        expect(shared.locator("summary")).to_have_text(
            "3 gateways share 3 games, this one folds 1: 1,007 decided rounds are not folded yet, 38 entries per second"
        )
        assert visit.value("replicas.lag") == MUCH_LAG + 7
        shared.locator("summary").click()
        rows = shared.locator("tbody tr")
        expect(rows.locator(".pill")).to_have_text(["this gateway", "no gateway", "gateway b2"])
        expect(rows.nth(1)).to_contain_text("homework / anna")
        expect(processes.locator("summary")).to_have_text(
            "1 of 2 front processes connected; started again: 5 times a front, 1 time the owner"
        )
        processes.locator("summary").click()
        expect(processes.locator("tbody .pill")).to_have_text(["runs", "runs", "not connected"])
        expect(processes.locator("tbody tr").nth(2)).to_contain_text("4 since 14 Nov 2023")
        expect(visit.page.get_by_role("region", name="Troubles")).to_contain_text("Front process 1 keeps ending")
        visit.check_accessibility()
