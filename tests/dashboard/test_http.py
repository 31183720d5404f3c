"""The endpoints of the dashboard on a running gateway: its figures and the recent decisions."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bpac.dashboard.document import Subject, game_document
from bpac.gateway.games.money.savings import SavingsReport
from bpac.gateway.games.restoring.restoring import folded
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Resolved
from bpac.routing.journal.entry_lines import read_journal
from bpac.routing.router import Router
from bpac.stores import Store, open_store
from bpac.stores.export import journal_lines
from bpac.testing import Reply, Request, ScriptedServer
from tests.dashboard.traffic import get
from tests.gateway.configured import settings
from tests.gateway.law import KnownPair, Question, Seen, crowd
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair
from tests.gateway.serving import main, to_toml

ROUNDS = 400
SAME = ("epsilon", "alpha", "steps", "threshold", "expert_calls", "expert_call_rate", "owed", "forfeits", "epoch")


def scripted(request: Request) -> Reply:
    """The known pair; the expert has no answer now and then."""
    if request.body["model"] == "expert" and int(request.question) % 31 == 5:
        return Reply("out of order", status=500)
    return KnownPair()(request)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningGateway, dict[str, Any], Path]]:
    """A gateway with real traffic behind it, its configuration and where that lies."""
    directory = tmp_path_factory.mktemp("dashboard")
    with ScriptedServer(scripted) as models:
        options = {"store": f"sqlite:///{directory / 'bpac.db'}", "snapshot_every": 150}
        price = {"price": 2.0}
        data = settings(models.base_url, gateway=options, model=price, epsilon=0.3, on_expert_failure="draft")
        (directory / "gateway.toml").write_text(to_toml(data))
        with RunningGateway(data) as gateway:
            seen: list[Seen] = []
            assert asyncio.run(crowd(gateway.url, map(Question, range(ROUNDS)), 8, seen)) == 0
            gateway.idle()
            yield gateway, data, directory


def the_game(gateway: RunningGateway) -> dict[str, Any]:
    """The document of the one game."""
    (game,) = get(gateway, "/data").json["games"]
    assert isinstance(game, dict)
    return game


def journal(store: Store) -> list[Any]:
    """The exported journal, without what the gateway claimed in between."""
    (game,) = store.games()
    return list(read_journal(f"{line}\n" for line in journal_lines(store, game)))


def test_the_numbers_are_those_of_the_exported_journal(
    place: tuple[RunningGateway, dict[str, Any], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Folded by the library, folded with its history, and as ``bpac status`` prints them."""
    gateway, _, directory = place
    shown = the_game(gateway)
    store = open_store(f"sqlite:///{directory / 'bpac.db'}", read_only=True)
    router = Router.rebuild(journal(store))
    summary = json.loads(json.dumps(router.summary().to_json()))
    assert {name: shown[name] for name in SAME} == {name: summary[name] for name in SAME}
    assert shown["certificate"] == summary["certificate"]
    assert shown["alarm"]["level"] == summary["alarm"]
    assert (shown["steps"], shown["owed"]) == (ROUNDS, 0)
    assert shown["forfeits"] == {"expert failed": summary["forfeits"]["expert failed"]}
    # Everything else that is drawn, from the first entry of the journal on, snapshot or not.
    (game,) = store.games()
    again = folded(store, game, lambda entry: None)
    savings = SavingsReport(**shown["savings"])
    subject = Subject(
        "homework", score="mean_token_probability", loss="answer", savings=savings, latency=shown["latency"]
    )
    assert json.loads(json.dumps(game_document(subject, again.router, again.history))) == shown
    store.close()
    assert main(["status", str(directory / "gateway.toml"), "--json"]) == 0
    (printed,) = json.loads(capsys.readouterr().out)["games"]
    assert {name: printed[name] for name in SAME} == {name: shown[name] for name in SAME}
    assert printed["savings"] == shown["savings"]
    assert printed["savings"]["money_saved"] is not None


# Where each number of the document is in /metrics.
METRICS = {
    "bpac_rounds_total": "steps",
    "bpac_expert_calls_total": "expert_calls",
    "bpac_threshold": "threshold",
    "bpac_open_rounds": "owed",
    "bpac_epoch": "epoch",
    "bpac_alarm": "alarm.level",
    "bpac_doubt": "doubt",
    "bpac_forfeit_share": "forfeit_share",
    "bpac_exploration_rate": "exploration_rate",
    "bpac_expert_busy": "expert_busy",
    "bpac_certificate_average_upper": "certificate.average_upper",
    "bpac_certificate_upper": "certificate.upper",
    "bpac_certificate_lower": "certificate.lower",
    "bpac_draft_tokens_total": "savings.draft_tokens",
    "bpac_expert_tokens_total": "savings.expert_tokens",
    "bpac_judge_tokens_total": "savings.judge_tokens",
    "bpac_tokens_saved": "savings.tokens_saved",
    "bpac_tokens_saved_at_least": "savings.tokens_saved_at_least",
    "bpac_tokens_saved_at_most": "savings.tokens_saved_at_most",
    "bpac_money_saved": "savings.money_saved",
    "bpac_money_saved_at_least": "savings.money_saved_at_least",
    "bpac_money_saved_at_most": "savings.money_saved_at_most",
    "bpac_share_saved": "savings.share_saved",
    "bpac_share_saved_at_least": "savings.share_saved_at_least",
    "bpac_money_share_saved": "savings.money_share_saved",
    "bpac_money_share_saved_at_least": "savings.money_share_saved_at_least",
    "bpac_money_spent_total": "savings.money_spent",
    **{
        f"bpac_{whose}_{kind}_tokens_total": f"savings.usage.{whose}.{kind}_tokens"
        for whose in ("draft", "expert", "judge")
        for kind in ("prompt", "cached", "estimated")
    },
}


def test_the_numbers_are_those_of_the_metrics(place: tuple[RunningGateway, dict[str, Any], Path]) -> None:
    """Every measurement of a game is in its document, and durations come from the same histograms."""
    gateway, _, _ = place
    shown = the_game(gateway)
    page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    values = {sample.name: sample.value for sample in samples if sample.labels == {"route": "homework", "segment": ""}}
    # No score has been learned yet.
    learned = {"bpac_learned_score_in_force": 0.0, "bpac_learned_score_accepted_share": 0.0}
    assert {name: values.pop(name) for name in learned} == learned
    assert len(shown["scores"]) == 1
    assert values.keys() == METRICS.keys()
    for name, path in METRICS.items():
        value: Any = shown
        for part in path.split("."):
            value = value[part]
        assert values[name] == pytest.approx(float(value), rel=1e-11), name
    forfeits = {one.labels["cause"]: one.value for one in samples if one.name == "bpac_forfeits_total"}
    assert forfeits == shown["forfeits"]
    for stage in shown["latency"]:
        counted = {
            one.name: one.value
            for one in samples
            if one.labels.get("stage") == stage["stage"] and "le" not in one.labels
        }
        assert counted["bpac_seconds_count"] == stage["count"]
        assert counted["bpac_seconds_sum"] / stage["count"] == pytest.approx(stage["mean"], rel=1e-7)
        assert stage["p50"] <= stage["p90"] <= stage["p99"]


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    """Only the latencies start again, because they belong to the process."""
    with ScriptedServer(KnownPair()) as models:
        data = settings(models.base_url, gateway={"store": f"sqlite:///{tmp_path / 'bpac.db'}", "snapshot_every": 50})
        with RunningGateway(data) as gateway:
            for number in range(120):
                post(gateway.url, Question(number).body)
            gateway.idle()
            before = the_game(gateway)
        with RunningGateway(data) as gateway:
            after = the_game(gateway)
            assert after.pop("latency") == []
            assert [stage["stage"] for stage in before.pop("latency")] == ["draft", "journal", "expert", "grading"]
            assert after == before


def test_no_request_reads_the_whole_journal(
    place: tuple[RunningGateway, dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the document nor the list of decisions reads the journal from its first entry."""
    gateway, _, _ = place

    def refused(*_: object) -> None:
        raise AssertionError("the journal is being read from its beginning")

    monkeypatch.setattr(gateway.service.store, "entries", refused)
    assert get(gateway, "/data").status == 200
    assert get(gateway, "/decisions?game=1").status == 200


def pages(gateway: RunningGateway, query: str) -> Iterator[dict[str, Any]]:
    """All decisions of a query, page by page."""
    below = ""
    while True:
        found = get(gateway, f"/decisions?game=1{query}{below}").json
        yield from found["decisions"]
        if found["next"] is None:
            return
        below = f"&before={found['next']}"


def test_recent_decisions(place: tuple[RunningGateway, dict[str, Any], Path]) -> None:
    """Newest first, page by page without a gap; each equals the journal and its own page."""
    gateway, _, _ = place
    entries = journal(gateway.service.store)
    decided = {entry.step: entry for entry in entries if isinstance(entry, Decision)}
    resolved = {entry.step: entry for entry in entries if isinstance(entry, Resolved)}
    found = list(pages(gateway, "&limit=37"))
    assert [one["step"] for one in found] == list(range(ROUNDS, 0, -1))
    for one in found:
        decision, outcome = decided[one["step"]], resolved.get(one["step"])
        for name in ("uncertainty", "threshold", "propensity", "call_expert", "epoch"):
            assert one[name] == getattr(decision, name)
        state = "kept" if not decision.call_expert else "forfeited" if outcome and outcome.loss is None else "resolved"
        assert one["state"] == state
        assert one["loss"] == (outcome.loss if outcome else None)
        assert one["cause"] == ("expert failed" if state == "forfeited" else "")
        assert one["answered_by"] == ("expert" if state == "resolved" else "draft")
        assert one["draft_tokens"] == 1
        assert one["expert_tokens"] == (1 if state == "resolved" else None)
        assert (one["route"], one["segment"], one["texts"]) == ("homework", "", None)
    for one in found[::50]:
        assert get(gateway, f"/decisions/{one['id']}").json == one
    assert {one["state"] for one in found} == {"kept", "resolved", "forfeited"}


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("&answered_by=draft", lambda one: one["answered_by"] == "draft"),
        ("&answered_by=expert&min_uncertainty=0.5", lambda o: o["answered_by"] == "expert" and o["uncertainty"] >= 0.5),
        ("&state=forfeited", lambda one: one["state"] == "forfeited"),
        ("&state=open", lambda one: one["state"] == "open"),
        ("&loss=some", lambda one: (one["loss"] or 0) > 0),
        ("&loss=none&max_uncertainty=0.4", lambda one: one["loss"] == 0 and one["uncertainty"] <= 0.4),
        ("&before=100", lambda one: one["step"] < 100),
    ],
)
def test_filters_return_the_matching_decisions(
    place: tuple[RunningGateway, dict[str, Any], Path], query: str, fits: Any
) -> None:
    """A filter returns exactly the decisions that match."""
    gateway, _, _ = place
    everything = list(pages(gateway, ""))
    expected = [one for one in everything if fits(one)]
    assert list(pages(gateway, f"{query}&limit=10" if "before" not in query else query)) == expected
    assert bool(expected) == ("open" not in query)


def test_a_search_reads_only_so_far(
    place: tuple[RunningGateway, dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter that matches nothing does not read a million rounds at once: it returns where to continue."""
    monkeypatch.setattr("bpac.gateway.games.shown.search.MOST_READ", 90)
    monkeypatch.setattr("bpac.gateway.games.shown.search.PORTION", 40)
    gateway, _, _ = place
    found = get(gateway, "/decisions?game=1&state=resolved&min_uncertainty=1").json
    assert found == {"decisions": [], "next": ROUNDS - 89}
    assert len(list(pages(gateway, "&state=forfeited"))) == the_game(gateway)["forfeits"]["expert failed"]


def test_open_rounds_and_texts() -> None:
    """A request that waits for feedback is open, and shows both answers to compare."""
    with Running(pair(Reply("41"), Reply("42")), loss="external", max_owed=3) as (gateway, _):
        names = []
        for _ in range(4):
            names.append(post(gateway.url, ASK).headers["x-bpac-decision"])
            gateway.idle()
        assert post(gateway.url, {"decision": names[3], "loss": 0.5}, "/v1/feedback").status == 200
        shown = [get(gateway, f"/decisions/{name}").json for name in names]
        # The oldest was given up because too many were waiting, which no entry of the journal records.
        assert [one["state"] for one in shown] == ["forfeited", "open", "open", "resolved"]
        assert shown[0]["cause"] == "crowded out"
        assert [one["texts"] for one in shown[1:]] == [{"draft": "41", "expert": "42"}] * 2 + [None]
        assert "counts as a loss of 1 until it is" in shown[1]["why"]
        assert shown[3]["loss"] == 0.5
        opened = get(gateway, "/decisions?game=1&state=open&limit=1").json
        assert [(one["step"], one["texts"]) for one in opened["decisions"]] == [(3, None)]
        rest = get(gateway, f"/decisions?game=1&state=open&before={opened['next']}").json
        assert ([one["step"] for one in rest["decisions"]], rest["next"]) == ([2], None)
        assert the_game(gateway)["owed"] == 2


@pytest.mark.parametrize(
    ("path", "status", "param"),
    [
        ("/data?game=7", 404, "game"), ("/data?game=x", 422, "game"), ("/data?game=", 422, "game"),
        ("/data?game=-1", 422, "game"), ("/data?game=%C2%B2", 422, "game"), (f"/data?game={'9' * 400}", 422, "game"),
        ("/decisions", 422, "game"), ("/decisions?game=7", 404, "game"),
        ("/decisions?game=1&limit=0", 422, "limit"), ("/decisions?game=1&limit=1000", 422, "limit"),
        ("/decisions?game=1&limit=1.5", 422, "limit"), ("/decisions?game=1&before=0", 422, "before"),
        ("/decisions?game=1&before=nan", 422, "before"), ("/decisions?game=1&state=lost", 422, "state"),
        ("/decisions?game=1&answered_by=me", 422, "answered_by"), ("/decisions?game=1&loss=1", 422, "loss"),
        ("/decisions?game=1&min_uncertainty=nan", 422, "min_uncertainty"),
        ("/decisions?game=1&max_uncertainty=1.1", 422, "max_uncertainty"),
        ("/decisions?game=1&max_uncertainty=much", 422, "max_uncertainty"),
        ("/decisions/dec-1-1-0000000000000000", 404, "decision"), ("/decisions/%F0%9F%92%A5", 404, "decision"),
        ("/decisions/..%2f..%2fetc", 404, None), ("/elsewhere", 404, None),
    ],
)  # fmt: skip
def test_invalid_queries_are_refused(
    place: tuple[RunningGateway, dict[str, Any], Path], path: str, status: int, param: str | None
) -> None:
    """An error in OpenAI's format that names the wrong parameter."""
    got = get(place[0], path)
    assert (got.status, got.json["error"]["param"]) == (status, param)


def test_segments_are_games_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own document; the busiest come in full, and all can be asked for by number."""
    monkeypatch.setattr("bpac.gateway.http.dashboard.dashboard.MOST_FULL", 1)
    monkeypatch.setattr("bpac.gateway.http.dashboard.dashboard.MOST_GAMES", 2)
    with Running(pair(Reply("41"), Reply("42")), segment_by="user") as (gateway, _):
        for user, count in (("anna", 1), ("ben", 3), ("carl", 2)):
            for _ in range(count):
                post(gateway.url, ASK | {"user": user})
        gateway.idle()
        document = get(gateway, "/data").json
        assert [(game["segment"], game["steps"]) for game in document["games"]] == [("ben", 3), ("carl", 2)]
        assert [game["series"] is None for game in document["games"]] == [False, True]
        assert document["games_left_out"] == 1
        (anna,) = get(gateway, "/data?game=1").json["games"]
        assert (anna["segment"], anna["steps"], anna["series"]["step"]) == ("anna", 1, [1])
        (one,) = get(gateway, "/decisions?game=1").json["decisions"]
        assert one["segment"] == "anna"
