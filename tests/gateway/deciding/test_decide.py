"""Decisions for callers that ask their models themselves: what they get, and what they cannot do."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from bpac.errors import SettingsError, StoreError
from bpac.gateway.config.file import Config
from bpac.routing.journal.entries import Stopped
from bpac.stores.export import table_rows
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.deciding.own_route import KEYS, Client, own
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway

OPEN = {"policy": "never"}  # every coin says that the draft is kept


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    """One gateway with keys for the tests of this file."""
    with RunningGateway(own(gateway={"keys": KEYS}, max_tickets=8, about="entropy of o3")) as running:
        yield running


@pytest.fixture
def team(gateway: RunningGateway) -> Client:
    """A caller that may decide and report."""
    return Client(gateway, "team-key")


def test_a_round_from_arrival_to_loss(gateway: RunningGateway, team: Client) -> None:
    """The ticket is decided with a propensity, the loss is accepted once, and the status counts the round."""
    operator = Client(gateway, "ops-key")
    before = operator.game()["steps"]
    reply = team.decide(team.arrive(), 0.3, usage={"prompt_tokens": 20, "completion_tokens": 7})
    assert reply["call_expert"]
    assert (reply["propensity"], reply["threshold"], reply["uncertainty"]) == (1.0, 0.0, 0.3)
    assert team.report(reply, 0.25).json == {"decision": reply["decision"], "loss": 0.25}
    assert (team.report(reply, 0.0).status, operator.game()["steps"]) == (409, before + 1)
    assert operator.game()["savings"]["draft_tokens"] >= 7


def test_the_dashboard_names_no_score(gateway: RunningGateway, team: Client) -> None:
    """The gateway does not know the score of its callers: the dashboard has the operator's words about it instead."""
    team.report(team.decide(team.arrive()), 0.0)
    (game,) = get_json(f"{gateway.url}/dashboard/data", "ops-key")["games"]
    assert (game["score"], game["about"]) == (None, "entropy of o3")


def test_a_repeated_decision_is_the_same_decision(gateway: RunningGateway, team: Client) -> None:
    """Whatever uncertainty it names: a ticket has one coin, also for callers that send it many times at once."""
    ticket = team.arrive()
    first = team.decide(ticket, 0.9)
    steps = Client(gateway, "ops-key").game()["steps"]
    replies: list[Any] = []
    threads = [threading.Thread(target=lambda: replies.append(team.decide(ticket, 0.0))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [first] * 8
    assert Client(gateway, "ops-key").game()["steps"] == steps
    team.report(first, 0.0)


def test_a_caller_cannot_ask_until_the_coin_spares_the_expert() -> None:
    """A draft below the threshold that is audited stays audited, however often its decision is asked for."""
    with RunningGateway(own(epsilon=0.5)) as gateway:
        client = Client(gateway)
        for _ in range(2000):
            ticket = client.arrive()
            reply = client.decide(ticket, 0.1)
            if reply["call_expert"] and reply["propensity"] < 1.0:
                break
            if reply["call_expert"]:
                client.report(reply, 0.0)
        assert reply["propensity"] < 0.95
        steps = client.game()["steps"]
        assert all(client.decide(ticket, uncertainty / 50) == reply for uncertainty in range(50))
        assert client.game()["steps"] == steps


def test_an_idempotency_key_stands_for_one_ticket(gateway: RunningGateway, team: Client) -> None:
    """For arrivals and for decisions without a ticket; the same key of another caller is another ticket."""
    key = {"Idempotency-Key": "query 7"}
    one, two = (team.post("arrive", key, route="own").json["ticket"] for _ in range(2))
    other = Client(gateway, "other-key").post("arrive", key, route="own").json["ticket"]
    assert one == two != other
    first = team.post("decide", key, route="own", uncertainty=0.4).json
    assert first["ticket"] == one
    assert team.post("decide", key, route="own", uncertainty=0.4).json == first
    reused = team.post("decide", key, route="own", uncertainty=0.1)
    assert (reused.status, reused.json["error"]["code"]) == (422, "idempotency_key_reused")
    assert "uncertainty 0.4, and this request has 0.1" in reused.json["error"]["message"]
    assert team.post("decide", {"Idempotency-Key": "x" * 256}, route="own", uncertainty=0.1).status == 422
    assert Client(gateway, "other-key").post("withdraw", ticket=other).status == 200


def test_a_ticket_belongs_to_its_caller(gateway: RunningGateway, team: Client) -> None:
    """Nobody else can decide or withdraw it, and only its caller's name, with the role, can report its loss."""
    ticket = team.arrive()
    for key in ("other-key", "call-key"):
        thief = Client(gateway, key)
        assert thief.refusal("decide", ticket=ticket, uncertainty=0.1) == (404, "unknown_ticket")
        assert thief.refusal("withdraw", ticket=ticket) == (404, "unknown_ticket")
    assert Client(gateway, "ops-key").refusal("decide", ticket=ticket, uncertainty=0.1) == (403, "missing_role")
    reply = team.decide(ticket)
    liar = Client(gateway, "other-key")
    assert liar.refusal("feedback", decision=reply["decision"], loss=0.0) == (403, "not_yours")
    assert liar.refusal("feedback", decision=reply["decision"], outcome="refused") == (403, "not_yours")
    mute = Client(gateway, "call-key")
    assert mute.refusal("feedback", decision=mute.decide()["decision"], loss=0.0) == (403, "missing_role")
    assert team.report(reply, 0.0).status == 200


@pytest.mark.parametrize(
    "forged", ["", "tic", "tic-1-0-0", "tic-0-" + "0" * 32 + "-" + "0" * 32, "tic-1-" + "0" * 32 + "-" + "0" * 32, "💥"]
)
def test_forged_tickets_are_refused(team: Client, forged: str) -> None:
    """An id that was never given out decides nothing; neither does one that was changed."""
    assert team.post("decide", ticket=forged, uncertainty=0.5).status in (404, 422)


def test_changed_tickets_are_refused(team: Client) -> None:
    """Every part of an id is sealed."""
    ticket = team.arrive()
    changed = [
        ticket.replace("tic-1", "tic-2"),
        ticket[:-1],
        ticket + "0",
        ticket + ".WzFd",
        ticket[:10] + "0" + ticket[11:],
    ]
    for forged in changed:
        if forged != ticket:
            assert team.refusal("decide", ticket=forged, uncertainty=0.5) == (404, "unknown_ticket")
    assert team.post("withdraw", ticket=ticket).status == 200


BAD: list[tuple[str, dict[str, Any], int, str]] = [
    ("arrive", {}, 422, "invalid_type"),
    ("arrive", {"route": 7}, 422, "invalid_type"),
    ("arrive", {"route": "missing"}, 404, "route_not_found"),
    ("decide", {"uncertainty": 0.5}, 422, "None"),
    ("decide", {"route": "own"}, 422, "out_of_range"),
    ("decide", {"route": "own", "uncertainty": 1.1}, 422, "out_of_range"),
    ("decide", {"route": "own", "uncertainty": True}, 422, "out_of_range"),
    ("decide", {"route": "own", "uncertainty": "0.5"}, 422, "out_of_range"),
    ("decide", {"route": "own", "uncertainty": None}, 422, "out_of_range"),
    ("decide", {"route": "own", "uncertainty": 0.5, "features": {"length": 3}}, 422, "no_features"),
    ("decide", {"route": "own", "uncertainty": 0.5, "features": [3]}, 422, "invalid_type"),
    ("decide", {"route": "own", "uncertainty": 0.5, "usage": {"completion_tokens": -1}}, 422, "out_of_range"),
    ("decide", {"ticket": 7, "uncertainty": 0.5}, 422, "invalid_type"),
    ("withdraw", {"ticket": "tic"}, 404, "unknown_ticket"),
    ("withdraw", {"ticket": "tic", "reason": "bored"}, 422, "invalid_value"),
    ("feedback", {"decision": "dec-1-1-0", "outcome": "fine"}, 422, "invalid_value"),
    ("feedback", {"decision": "dec-1-1-0", "outcome": "refused", "loss": 0.0}, 422, "invalid_value"),
    ("feedback", {"decision": "dec-1-1-0", "loss": None}, 422, "out_of_range"),
]


def test_wrong_requests_take_no_ticket(gateway: RunningGateway, team: Client) -> None:
    """Each gets an error that names its place, and nothing is counted."""
    operator = Client(gateway, "ops-key")
    before = operator.game()["steps"], operator.status()["tickets"]["own"]["held"]
    for path, body, status, code in BAD:
        got = team.post(path, **body)
        assert (got.status, str(got.json["error"]["code"])) == (status, code), (path, body, got.json)
    assert post(gateway.url, b'{"route": "own", "uncertainty": NaN}', "/v1/decide", team._headers).status == 400
    assert post(gateway.url, b" " * 100_000, "/v1/decide", team._headers).status == 413
    assert (operator.game()["steps"], operator.status()["tickets"]["own"]["held"]) == before


def test_a_caller_holds_a_limited_number_of_tickets(gateway: RunningGateway) -> None:
    """More get 429; other callers are not affected, and each ticket that is decided makes place for one."""
    greedy = Client(gateway, "other-key")
    tickets = [greedy.arrive() for _ in range(8)]
    assert greedy.refusal("arrive", route="own") == (429, "too_many_tickets")
    assert greedy.refusal("decide", route="own", uncertainty=0.5) == (429, "too_many_tickets")
    free = Client(gateway, "team-key")
    assert free.post("withdraw", ticket=free.arrive()).status == 200
    for ticket in tickets:
        reply = greedy.decide(ticket)
        greedy.report(reply, 0.0)
    assert greedy.post("withdraw", ticket=greedy.arrive()).status == 200


def test_a_withdrawn_ticket_is_not_decided(gateway: RunningGateway, team: Client) -> None:
    """A later decision says that the expert answers; a decided ticket cannot be withdrawn any more."""
    operator = Client(gateway, "ops-key")
    before, ticket = operator.game(), team.arrive()
    for _ in range(2):
        assert team.post("withdraw", ticket=ticket, reason="no-score").json["reason"] == "withdrawn"
    reply = team.decide(ticket, 0.0)
    assert (reply["decision"], reply["call_expert"], reply["serve_draft"]) == (None, True, False)
    after = operator.game()
    assert (after["steps"], after["unscored"]["requests"]) == (before["steps"], before["unscored"]["requests"] + 1)
    decided = team.decide()
    assert team.refusal("withdraw", ticket=decided["ticket"]) == (409, "already_decided")
    team.report(decided, 0.0)


def test_an_expert_that_refuses_makes_a_fair_round(gateway: RunningGateway, team: Client) -> None:
    """``outcome = "refused"`` is counted as a refusal, ``"unknown"`` as a forfeit, each once."""
    operator = Client(gateway, "ops-key")
    before = operator.game()
    refused, unknown = team.decide(), team.decide()
    assert team.post("feedback", decision=refused["decision"], outcome="refused").status == 200
    assert team.post("feedback", decision=unknown["decision"], outcome="unknown").status == 200
    assert team.refusal("feedback", decision=refused["decision"], loss=0.0) == (409, "already_resolved")
    game = operator.game()
    assert game["refused"] == before["refused"] + 1
    assert game["forfeits"]["caller gave up"] == 1


def test_other_routes_are_not_decided_here() -> None:
    """A route whose models the gateway asks would have two laws in one game, so both ways are refused with a reason."""
    config = settings("http://127.0.0.1:9/v1")
    config["routes"]["own"] = {"decide_only": True, "epsilon": 0.2, "segment_by": "model"}
    config["routes"]["one"] = {"expert": "large"}
    with RunningGateway(config) as gateway:
        client = Client(gateway)
        for name in ("homework", "one"):
            assert client.refusal("decide", route=name, uncertainty=0.5) == (400, "not_decide_only")
        for asked in ("own", "own:a"):
            got = post(gateway.url, ASK | {"model": asked})
            assert (got.status, got.json["error"]["code"]) == (400, "decides_only")
        assert post(gateway.url, {"model": "own"}, "/v1/embeddings").json["error"]["code"] == "decides_only"
        segments = {client.post("decide", route=f"own:{one}", uncertainty=0.5).json["segment"] for one in "ab"}
        assert segments == {"a", "b"}
        assert client.post("decide", route="other", ticket=client.arrive(), uncertainty=0.5).status == 422


def test_features_are_learned_from() -> None:
    """The journal records what the route lists, its segment included; what is not listed is refused."""
    config = own(features=["draft_tokens", "task", "segment"], segment_by="header:x-tenant")
    with RunningGateway(config) as gateway:
        client = Client(gateway)
        features = {"draft_tokens": 12, "task": "law"}
        got = client.post("decide", {"x-tenant": "a"}, route="own", uncertainty=0.5, features=features)
        assert got.json["segment"] == "a"
        (game,) = [game for game in gateway.service.live_games() if game.segment == "a"]
        (decision,) = game.router.owed
        assert decision.features == (12.0, "law", "a")
        keyed = {"x-tenant": "b", "Idempotency-Key": "key"}
        assert client.post("decide", keyed, route="own", uncertainty=0.5, features=features).status == 200
        assert client.post("decide", keyed, route="own", uncertainty=0.5, features=features).status == 200
        other = client.post("decide", keyed, route="own", uncertainty=0.5, features={"task": "tax"})
        assert (other.status, other.json["error"]["param"]) == (422, "features")
        # A key belongs to a segment, as it does to a route.
        elsewhere = client.post("decide", {**keyed, "x-tenant": "c"}, route="own", uncertainty=0.1)
        assert (elsewhere.status, elsewhere.json["step"]) == (200, 1)
        ticket = client.arrive()
        assert client.refusal("decide", ticket=ticket, uncertainty=0.5, features={"size": 1}) == (
            422,
            "invalid_features",
        )
        assert client.decide(ticket)["decision"] is not None


def test_a_caller_that_vanishes_is_charged_and_forgotten() -> None:
    """After ``draft_deadline`` its ticket counts as a loss and blocks nobody; after ``deadline`` it is void."""
    with RunningGateway(own(draft_deadline=0.05, deadline=0.2, max_tickets=20)) as gateway:
        client = Client(gateway)
        tickets = [client.arrive() for _ in range(8)]
        decided = client.decide()
        wait_for(lambda: client.status()["tickets"]["own"].get("expired") == 8)
        assert client.status()["tickets"]["own"]["held"] == 0
        late = client.decide(tickets[0], 0.0)
        assert (late["decision"], late["reason"], late["call_expert"]) == (None, "expired", True)
        (warning,) = client.status()["warnings"]
        assert (warning["route"], warning["count"]) == ("own", 8)
        assert "draft_deadline" in warning["remedy"]
        assert decided["decision"]
        wait_for(lambda: client.game()["forfeits"] == {"deadline": 1})
        (game,) = gateway.service.live_games()
        assert (game.router.under_way, game.idle) == ((), True)
        assert gateway.reload(own(about="others"))  # the game ends, because nothing is under way in it
        wait_for(lambda: not gateway.service._retired)
        *_, last = (entry for entry, _ in gateway.service.store.entries(game.kept))
        assert isinstance(last, Stopped)
        found = table_rows(gateway.service.store, game.kept)
        assert (found.interrupted, found.given_up) == (8, 1)


def test_a_decision_that_may_be_lost_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store fails between decision and reply: the caller gets 503, and then that the expert answers; one coin."""
    with RunningGateway(own()) as gateway:
        client = Client(gateway)
        ticket = client.arrive()

        async def fail() -> None:
            raise StoreError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(gateway.service.store, "durable", fail)
            assert client.refusal("decide", ticket=ticket, uncertainty=0.5) == (503, "store_failed")
        reply = client.decide(ticket, 0.0)
        assert (reply["decision"], reply["reason"], reply["call_expert"]) == (None, "store-failed", True)
        assert client.game()["steps"] == 1
        assert client.status()["tickets"]["own"]["held"] == 0


def test_drafts_that_fail_together_are_an_outage() -> None:
    """Three tickets given back because drafts failed, and none decided in between: all are cut off, and one charged."""
    with RunningGateway(own()) as gateway:
        client = Client(gateway)
        tickets = [client.arrive() for _ in range(6)]
        for ticket in tickets[:3]:
            assert client.post("withdraw", ticket=ticket, reason="draft-failed").status == 200
        reply = client.decide(tickets[5], 0.0)
        assert (reply["decision"], reply["reason"]) == (None, "outage")


def test_a_kept_draft_needs_no_expert_and_takes_no_loss() -> None:
    """The reply says that the draft is served; a loss for it is refused."""
    with RunningGateway(own(policy="never")) as gateway:
        client = Client(gateway)
        reply = client.decide(client.arrive(), 0.9)
        assert (reply["call_expert"], reply["serve_draft"]) == (False, True)
        assert client.refusal("feedback", decision=reply["decision"], loss=0.0) == (409, "not_audited")


def test_budgets_count_rounds() -> None:
    """A caller with a budget takes as many tickets as it may send requests; deciding them is free."""
    keys = [{"name": "team", "key": "team-key", "roles": ["call"], "requests_per_day": 2}, KEYS[-1]]
    with RunningGateway(own(gateway={"keys": keys})) as gateway:
        team = Client(gateway, "team-key")
        tickets = [team.arrive(), team.decide()["ticket"]]
        assert team.refusal("arrive", route="own") == (429, "insufficient_quota")
        assert team.decide(tickets[0])["decision"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"draft": "small"}, "routes.own.draft: a route that decides only has no models"),
    ({"decide_only": False}, "routes.own.decide_only is true or left out"),
    ({"loss": "answer"}, "routes.own.loss: answer compares answers"),
    ({"learn": True}, "routes.own.learn needs what scores are learned from"),
    ({"learn": {"embeddings": True}, "features": ["a"]}, "routes.own.learn: embeddings are of prompts"),
    ({"features": ["a", "a"]}, "routes.own.features"),
    ({"max_tickets": 0}, "routes.own.max_tickets"),
    ({"minimise": "money"}, "routes.own.minimise"),
    ({"sticky_by": "user"}, "routes.own.sticky_by"),
]


@pytest.mark.parametrize(("route", "message"), WRONG)
def test_settings_that_do_not_fit_are_refused(route: dict[str, Any], message: str) -> None:
    """The error names the key and says what to do."""
    with pytest.raises(SettingsError) as caught:
        Config.read(own(**route))
    assert message in str(caught.value)


def test_what_the_rounds_are_about_is_a_term_of_the_game() -> None:
    """If ``about`` or the features change, another game begins; other settings go on with it."""
    with RunningGateway(own(about="small model")) as gateway:
        client = Client(gateway)
        client.decide()
        number = client.game()["game"]
        assert gateway.reload(own(about="small model", max_tickets=3))
        assert client.game()["game"] == number
        assert gateway.reload(own(about="another model"))
        assert (client.game()["game"] != number, client.game()["steps"]) == (True, 0)
