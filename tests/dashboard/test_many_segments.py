"""More than a thousand segments: by route, searched, sorted, a page at a time, and names that cannot deceive."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from bpac.gateway.games.live_game import LiveGame
from bpac.gateway.games.segments import RouteGames
from bpac.testing import Reply
from tests.dashboard.browser import DESKTOP, PHONE, Visit
from tests.dashboard.traffic import get
from tests.gateway.configured import wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair

SEGMENTS = 1200
SIZES = {"desktop": DESKTOP, "phone": PHONE}
# Names that look like others, hide a part of themselves, or disturb the page, and how they are shown.
NAMES = {
    "M\u00fcller \u6771\u4eac \u0645\u0635\u0631": "M\u00fcller \u6771\u4eac \u0645\u0635\u0631",
    "acme\u200b": "acme\\u{200b}",
    "acme ": "acme\\u{20}",
    "ac\u00a0me": "ac\\u{a0}me",
    "ac  me": "ac\\u{20} me",
    "\u202eemca": "\\u{202e}emca",
    "\u2066acme": "\\u{2066}acme",
    "ac\u3164me": "ac\\u{3164}me",
    "ac\x07me\x1b[31m": "ac\\u{7}me\\u{1b}[31m",
    "z" + "\u0301" * 6: "z" + "\u0301" * 3 + "\\u{301}" * 3,
    "ac\ue000me": "ac\\u{e000}me",
}


def start(gateway: RunningGateway, segment: str) -> LiveGame:
    """The game of a segment, new or not, without a request."""
    (_, games) = gateway.service._running.current.routes["homework"]
    assert isinstance(games, RouteGames)
    return games.of_segment(segment)


def play(game: LiveGame, rounds: int) -> None:
    """Rounds without a loss."""
    for _ in range(rounds):
        decision = game.decide(0.5, game.drafting.arrive(), {"draft_tokens": 1})
        if decision.call_expert:
            game.outcomes.resolve(decision, 0.0, {"expert_tokens": 9})


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    """A gateway with more than a thousand segments, most of them quiet, one of which does not route."""
    options: dict[str, Any] = {"segment_by": "metadata:tenant", "most_segments": 10_000}
    with Running(pair(Reply("41"), Reply("42")), **options) as (running, _):
        for number in range(SEGMENTS - len(NAMES)):
            start(running, f"tenant {number}")
        for name in NAMES:
            start(running, name)
        play(start(running, "tenant 7"), 60)
        play(start(running, "tenant 8"), 5)
        quiet = start(running, "tenant 1150")
        quiet.drafting.withdraw(quiet.drafting.arrive(), "no-score")
        yield running


def listed(gateway: RunningGateway, **query: Any) -> dict[str, Any]:
    """The document of a list of games."""
    got = get(gateway, f"/data?{urlencode(query)}")
    assert got.status == 200
    document = got.json
    assert isinstance(document, dict)
    return document


def names(document: dict[str, Any]) -> list[str]:
    """The segments of a document."""
    return [game["segment"] for game in document["games"]]


def test_the_most_urgent_of_all_comes_first(gateway: RunningGateway) -> None:
    """Although it has no round at all; totals are over all games, and the document stays small."""
    got = get(gateway, "/data?limit=100")
    document = got.json
    assert names(document)[:3] == ["tenant 1150", "tenant 8", "tenant 0"]
    assert document["games"][0]["verdict"]["level"] == "stopped"
    assert (len(document["games"]), document["games_found"], document["games_in_all"]) == (100, SEGMENTS, SEGMENTS)
    assert document["games_left_out"] == SEGMENTS - 100
    (route,) = document["routes"]
    assert (route["route"], route["games"], route["steps"], route["unscored"]) == ("homework", SEGMENTS, 65, 1)
    assert route["levels"] == {"stopped": 1, "safe": 1, "warming": SEGMENTS - 2}
    assert all(game["series"] is None for game in document["games"])
    assert len(got.body) < 500_000
    assert len(get(gateway, "/data").body) < 2_000_000


def test_searching_and_sorting(gateway: RunningGateway) -> None:
    """On the gateway, over all games: a part of the name, the route, the verdict, seven orders and their reverse."""
    assert sorted(names(listed(gateway, search="TENANT 115"))) == sorted(
        ["tenant 115", *(f"tenant {number}" for number in range(1150, 1160))]
    )
    assert names(listed(gateway, search="m\u00dcLLER")) == ["M\u00fcller \u6771\u4eac \u0645\u0635\u0631"]
    assert names(listed(gateway, level="stopped")) == ["tenant 1150"]
    assert names(listed(gateway, sort="requests", limit=2)) == ["tenant 7", "tenant 8"]
    saved = [game["savings"]["tokens_saved"] for game in listed(gateway, sort="saved", reverse=1)["games"]]
    assert saved == sorted(saved)
    assert saved[0] < saved[-1]
    assert names(listed(gateway, sort="unscored", limit=1)) == ["tenant 1150"]
    assert names(listed(gateway, sort="requests", reverse=1, offset=SEGMENTS - 2)) == ["tenant 8", "tenant 7"]
    by_name = [
        name for offset in range(0, SEGMENTS, 200) for name in names(listed(gateway, sort="name", offset=offset))
    ]
    assert by_name == sorted(by_name, key=lambda name: (name.casefold(), name))
    assert len(set(by_name)) == SEGMENTS
    assert listed(gateway, route="elsewhere")["games"] == []
    assert listed(gateway, offset=SEGMENTS)["games"] == []
    for sort in ("loss", "expert_calls"):
        assert len(names(listed(gateway, sort=sort))) == 200


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("sort=size", "sort"), ("level=bad", "level"), ("offset=-1", "offset"), ("limit=0", "limit"),
        ("reverse=yes", "reverse"), (f"search={'x' * 301}", "search"), ("offset=1e9", "offset"),
    ],
)  # fmt: skip
def test_wrong_queries(gateway: RunningGateway, query: str, param: str) -> None:
    """Each is an error that names the parameter."""
    got = get(gateway, f"/data?{query}")
    assert (got.status, got.json["error"]["param"]) == (422, param)


def test_only_games_that_changed_are_computed(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request for the list would block the gateway for seconds otherwise; a change is shown at once."""
    listed(gateway)
    computed = []
    whole = "bpac.gateway.http.dashboard.dashboard.game_document"
    from bpac.dashboard.document import game_document as original  # noqa: PLC0415

    def counted(subject: Any, *parts: Any, **options: Any) -> dict[str, Any]:
        computed.append(subject.segment)
        return original(subject, *parts, **options)

    monkeypatch.setattr(whole, counted)
    listed(gateway, sort="name")
    assert computed == []
    play(start(gateway, "tenant 9"), 1)
    (game,) = listed(gateway, search="tenant 9", sort="requests", limit=1)["games"]
    assert (game["segment"], game["steps"], computed) == ("tenant 9", 1, ["tenant 9"])


@pytest.mark.parametrize("size", SIZES)
def test_finding_a_segment(browser: Browser, gateway: RunningGateway, size: str) -> None:
    """By route, by search, by order, by page; the address keeps all of it, and the way back leads to it."""
    with Visit(browser, SIZES[size]) as visit:
        page = visit.page
        page.goto(f"{gateway.url}/dashboard")
        rows = page.locator("tr[data-game]")
        expect(rows).to_have_count(100)
        expect(rows.first).to_contain_text("tenant 1150")
        expect(page.get_by_role("region", name="Routes")).to_contain_text("1 not routing")
        expect(page.locator(".overview-summary")).to_contain_text(f"{SEGMENTS:,} games: 1 not routing")
        visit.check_accessibility()
        page.get_by_role("button", name="Next games").click()
        expect(page.get_by_text(f"101 to 200 of {SEGMENTS:,}")).to_be_visible()
        page.get_by_role("searchbox", name="Route or segment").fill("TENANT 115")
        expect(rows).to_have_count(11)
        page.get_by_label("Sorted by").select_option("name")
        expect(rows.first).to_contain_text("tenant 115")
        page.get_by_label("reversed").check()
        expect(rows.first).to_contain_text("tenant 1159")
        page.reload()
        expect(rows.first).to_contain_text("tenant 1159")
        expect(page.get_by_label("reversed")).to_be_checked()
        page.get_by_role("link", name="tenant 1159").click()
        expect(page.locator("h1")).to_have_text("homework tenant 1159")
        page.go_back()
        expect(rows).to_have_count(11)
        page.get_by_role("combobox", name="Verdict", exact=True).select_option("stopped")
        expect(rows).to_have_count(1)
        expect(page.locator("h1")).to_have_text("All routes")
        page.get_by_role("searchbox", name="Route or segment").fill("nobody")
        expect(page.get_by_text("No route or segment matches these filters.")).to_be_visible()


def test_names_that_deceive(browser: Browser, gateway: RunningGateway) -> None:
    """Each is shown so that it can be told from every other, and what is shown can be searched for."""
    with Visit(browser) as visit:
        page = visit.page
        page.goto(f"{gateway.url}/dashboard")
        found, heading = page.locator("tr[data-game] .segment-name"), page.locator("h1 .segment-name")
        for name in NAMES.values():
            page.get_by_role("searchbox", name="Route or segment").fill(f"homework / {name}")
            wait_for(lambda name=name: found.all_text_contents() == [name])  # type: ignore[misc]
            found.click()
            expect(heading).to_have_text(name)
            assert heading.evaluate("node => node.tagName") == "BDI"
            page.go_back()


def test_a_real_request_in_utf_8(gateway: RunningGateway) -> None:
    """A segment named in any script, sent by a client, is found under its name."""
    name = "\u041c\u043e\u0441\u043a\u0432\u0430 \U0001f680"
    assert post(gateway.url, {**ASK, "metadata": {"tenant": name}}).status == 200
    gateway.idle()
    (game,) = listed(gateway, search=name)["games"]
    assert (game["segment"], game["steps"]) == (name, 1)
