"""Roles: callers with a valid key cannot do or see what their key has no role for."""

from typing import Any

import pytest

from bpac.gateway.auth.keys import ApiKeys, KeySettings, Role
from bpac.gateway.config.file import Config
from bpac.gateway.config.secrets import ApiKey
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import ALL_ROLES, OPERATOR, bearer, settings
from tests.gateway.raw import Got, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

MODELS = pair(Reply("41"), Reply("42"))
KEYS = [
    {"name": "team-a", "key": "a-calls", "roles": ["call"]},
    {"name": "team-a", "key": "a-grades", "roles": ["feedback"]},
    {"name": "team-b", "key": "b-both", "roles": ["call", "feedback"]},
    {"name": "grader", "key": "grades-all", "roles": ["feedback", "operator"]},
    OPERATOR,
]
EXTERNAL = {"gateway": {"keys": KEYS, "api_keys": ["nameless", "other"]}, "loss": "external", "segment_by": "api_key"}


def get(gateway: RunningGateway, path: str, key: str) -> Got:
    """Get a page with a key."""
    return post(gateway.url, b"", path, bearer(key), "GET")


def decide(gateway: RunningGateway, key: str) -> str:
    """Send a request with a key, wait until it is graded, and return the id of its decision."""
    decision = post(gateway.url, ASK, headers=bearer(key)).headers["x-bpac-decision"]
    gateway.idle()
    return decision


def report(gateway: RunningGateway, decision: str, key: str, loss: float = 0.0) -> tuple[int, str]:
    """Report a loss; the status, and the code of the error if there is one."""
    got = post(gateway.url, {"decision": decision, "loss": loss}, "/v1/feedback", bearer(key))
    return got.status, got.json.get("error", {}).get("code", "")


def test_a_tenant_neither_sees_nor_grades_decisions_of_another() -> None:
    """The id of a decision is of no use to other tenants, should it leak."""
    with Running(MODELS, **EXTERNAL) as (gateway, _):
        theirs = {key: decide(gateway, key) for key in ("a-calls", "nameless")}
        for decision in theirs.values():
            for path in (f"/v1/decisions/{decision}", f"/dashboard/decisions/{decision}"):
                for key in ("b-both", "other"):
                    got = get(gateway, path, key)
                    assert (got.status, got.json["error"]["code"]) == (403, "not_yours")
                    assert (got.json["error"]["type"], b"42" in got.body) == ("permission_error", False)
            assert report(gateway, decision, "b-both") == (403, "not_yours")
            assert report(gateway, decision, "other") == (403, "missing_role")
        games = get(gateway, "/v1/status", OPERATOR["key"]).json
        assert [game["owed"] for game in games["routes"]["homework"]] == [1, 1], "no loss was accepted"
        assert games["callers"]["refused"] == {"not_yours": 10, "missing_role": 2}
        # Negative control: the tenants they were made for, and operators, see them.
        for key, decision in theirs.items():
            for allowed in (key, OPERATOR["key"]):
                assert get(gateway, f"/v1/decisions/{decision}", allowed).json == {"draft": "41", "expert": "42"}
                assert get(gateway, f"/dashboard/decisions/{decision}", allowed).json["id"] == decision


def test_a_key_without_the_role_feedback_reports_no_loss() -> None:
    """Not even for its own decisions, with ``loss = "external"``."""
    with Running(MODELS, **EXTERNAL) as (gateway, _):
        for key in ("a-calls", "nameless"):
            for _ in range(5):
                assert report(gateway, decide(gateway, key), key) == (403, "missing_role")
        status = get(gateway, "/v1/status", OPERATOR["key"]).json["routes"]["homework"]
        assert [(game["owed"], game["threshold"]) for game in status] == [(5, 0.0), (5, 0.0)]


def test_losses_are_accepted_from_the_same_tenant_and_from_operators() -> None:
    """From any key with the role feedback and the same name, and for all decisions if it is an operator's too."""
    with Running(MODELS, **EXTERNAL) as (gateway, _):
        assert report(gateway, decide(gateway, "a-calls"), "a-grades") == (200, "")
        assert report(gateway, decide(gateway, "b-both"), "b-both") == (200, "")
        for key in ("a-calls", "b-both", "nameless"):
            decision = decide(gateway, key)
            assert report(gateway, decision, OPERATOR["key"]) == (403, "missing_role"), (
                "the role operator does not include the role feedback"
            )
            assert report(gateway, decision, "grades-all") == (200, "")


@pytest.mark.parametrize("path", ["/v1/status", "/metrics", "/dashboard", "/dashboard/data"])
def test_only_operators_see_numbers_of_all_tenants(path: str) -> None:
    """Other keys get 403, and wrong ones 401."""
    with Running(MODELS, **EXTERNAL) as (gateway, _):
        for key in ("a-calls", "a-grades", "b-both", "nameless"):
            assert get(gateway, path, key).status == 403
        assert get(gateway, path, OPERATOR["key"]).status == 200
        assert get(gateway, path, "wrong").status == 401


def test_a_key_without_the_role_call_cannot_call_a_model() -> None:
    """An operator's key in a monitoring system cannot be used for completions."""
    with Running(MODELS, **EXTERNAL) as (gateway, models):
        for key in (OPERATOR["key"], "a-grades"):
            got = post(gateway.url, ASK, headers=bearer(key))
            assert (got.status, got.json["error"]["code"]) == (403, "missing_role")
            assert get(gateway, "/v1/models", key).status == 200
        assert models.requests == []


def test_each_tenant_lists_its_own_decisions() -> None:
    """Also in a game that several tenants share."""
    options = EXTERNAL | {"segment_by": "header:x-team"}
    with Running(MODELS, **options) as (gateway, _):
        made = {key: [decide(gateway, key) for _ in range(count)] for key, count in (("a-calls", 2), ("b-both", 3))}
        listed = {key: _listed(gateway, key) for key in ("a-calls", "b-both", "other", OPERATOR["key"])}
        assert {key: sorted(listed[key]) for key in made} == {key: sorted(names) for key, names in made.items()}
        assert listed["other"] == []
        assert len(listed[OPERATOR["key"]]) == 5


def _listed(gateway: RunningGateway, key: str) -> list[str]:
    return [decision["id"] for decision in get(gateway, "/dashboard/decisions?game=1", key).json["decisions"]]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("draft", "score"),
    [
        (Reply("4 1"), "mean_token_probability"),
        (Reply("4 1"), {"name": "mean_token_probability", "first_tokens": 1}),
    ],
    ids=["scored", "beginning"],
)
def test_every_decision_is_recorded_with_its_owner(draft: Reply, score: Any, stream: bool) -> None:
    """The journal has the name of the key or a hash, never the key, however the decision is made."""
    with Running(pair(draft, Reply("42")), **EXTERNAL, score=score) as (gateway, _):
        for key in ("a-calls", "nameless"):
            got = post(gateway.url, ASK | {"stream": stream}, headers=bearer(key))
            shown = get(gateway, f"/dashboard/decisions/{got.headers['x-bpac-decision']}", key)
            assert shown.status == 200
            gateway.idle()
        notes = [
            kept.note["caller"]
            for game in gateway.service.store.games()
            for kept in gateway.service.store.entries(game)
            if "caller" in kept.note
        ]
        assert notes[0] == "team-a"
        assert notes[1].startswith("#")
        assert "nameless" not in notes[1]


def test_decisions_without_an_owner_are_for_operators(tmp_path: Any) -> None:
    """Decisions that were made before there were keys have no owner, and no tenant sees them."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(MODELS) as models:
        config = settings(models.base_url, gateway=store, loss="external")
        with RunningGateway(config) as gateway:
            decision = post(gateway.url, ASK).headers["x-bpac-decision"]
            gateway.idle()
        config["gateway"] |= {"keys": KEYS}
        with RunningGateway(config) as gateway:
            for key in ("a-calls", "a-grades", "b-both"):
                assert get(gateway, f"/dashboard/decisions/{decision}", key).status == 403
            assert report(gateway, decision, "b-both") == (403, "not_yours")
            assert get(gateway, f"/dashboard/decisions/{decision}", OPERATOR["key"]).status == 200
            assert report(gateway, decision, "grades-all") == (200, "")


def test_a_key_can_be_replaced_without_a_new_game() -> None:
    """Two keys with one name are one tenant: one segment, and the same decisions."""
    keys = [{"name": "team", "key": key, "roles": ALL_ROLES} for key in ("old", "new")]
    with Running(MODELS, gateway={"keys": keys}, loss="external", segment_by="api_key") as (gateway, _):
        decision = decide(gateway, "old")
        assert get(gateway, f"/v1/decisions/{decision}", "new").status == 200
        decide(gateway, "new")
        (game,) = get(gateway, "/v1/status", "new").json["routes"]["homework"]
        assert (game["segment"], game["steps"]) == ("team", 2)


def test_missing_roles_are_logged_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    """If no key has the role operator or feedback, the log says what cannot be used."""
    with Running(MODELS, gateway={"api_keys": ["one"]}, loss="external"):
        pass
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [message.split(",")[0] for message in warnings] == [
        "no key has the role operator", "no key has the role feedback"
    ]  # fmt: skip
    caplog.clear()
    with Running(MODELS, gateway={"keys": [{"name": "all", "key": "one", "roles": ALL_ROLES}]}, loss="external"):
        pass
    with Running(MODELS, loss="external"):
        pass
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_named_key_takes_precedence() -> None:
    """A key that is listed with and without a name has the roles of the named one."""
    keys = ApiKeys(["one"], [KeySettings("team", ApiKey("one"), frozenset({Role.FEEDBACK}))], b"secret")
    identity = keys.identity(keys.digest(b"one"))
    assert identity is not None
    assert (identity.owner, identity.roles) == ("team", frozenset({Role.FEEDBACK}))


def test_printing_a_configuration_shows_no_key() -> None:
    """Neither keys of callers nor passwords of models."""
    config = Config.read(settings("http://me:pass@x/v1", gateway={"keys": KEYS, "api_keys": ["nameless"]}))
    for secret in ("a-calls", "nameless", "pass", "ops-key"):
        assert secret not in repr(config)
        assert secret not in repr(config.keys)


@pytest.mark.parametrize(("key", "opens"), [("a-calls", False), ("b-both", True)], ids=["calls", "grades"])
def test_only_a_key_with_the_role_feedback_can_open_a_threshold(key: str, opens: bool) -> None:
    """By reporting a loss of 0 for wrong drafts: a key that may only call cannot, one that may grade can within 100."""
    with Running(pair(Reply("wrong"), Reply("42")), **EXTERNAL | {"epsilon": 0.3}) as (gateway, _):
        accepted = []
        for _ in range(100):
            got = post(gateway.url, ASK, headers=bearer(key))
            accepted.append(float(got.headers["x-bpac-uncertainty"]) < float(got.headers["x-bpac-threshold"]))
            report(gateway, got.headers["x-bpac-decision"], key)
        assert any(accepted) is opens
