"""Who may look and who may grade: attacks on a running gateway by those who have a key, but not the right one."""

from typing import Any

import pytest

from bpac.gateway.auth.keys import ApiKeys, KeySettings, Role
from bpac.gateway.config.file import Config
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
    """A page, asked for with a key."""
    return post(gateway.url, b"", path, bearer(key), "GET")


def decide(gateway: RunningGateway, key: str) -> str:
    """The name of a decision on a request that was made with a key, once its answers are kept."""
    decision = post(gateway.url, ASK, headers=bearer(key)).headers["x-bpac-decision"]
    gateway.idle()
    return decision


def mark(gateway: RunningGateway, decision: str, key: str, loss: float = 0.0) -> tuple[int, str]:
    """Report a loss; the status, and the code of the error if there is one."""
    got = post(gateway.url, {"decision": decision, "loss": loss}, "/v1/feedback", bearer(key))
    return got.status, got.json.get("error", {}).get("code", "")


def test_one_tenant_neither_reads_nor_marks_what_another_was_answered() -> None:
    """With ``segment_by = "api_key"`` the name of a decision, should it leak, is of no use to others."""
    with Running(MODELS, **EXTERNAL) as (gateway, _):
        theirs = {key: decide(gateway, key) for key in ("a-calls", "nameless")}
        for decision in theirs.values():
            for path in (f"/v1/decisions/{decision}", f"/dashboard/decisions/{decision}"):
                for key in ("b-both", "other"):
                    got = get(gateway, path, key)
                    assert (got.status, got.json["error"]["code"]) == (403, "not_yours")
                    assert (got.json["error"]["type"], b"42" in got.body) == ("permission_error", False)
            assert mark(gateway, decision, "b-both") == (403, "not_yours")
            assert mark(gateway, decision, "other") == (403, "missing_role")
        games = get(gateway, "/v1/status", OPERATOR["key"]).json
        assert [game["owed"] for game in games["routes"]["homework"]] == [1, 1], "nothing was marked"
        assert games["callers"]["refused"] == {"not_yours": 10, "missing_role": 2}
        # Negative control: those they were made for, and operators, see them.
        for key, decision in theirs.items():
            for allowed in (key, OPERATOR["key"]):
                assert get(gateway, f"/v1/decisions/{decision}", allowed).json == {"draft": "41", "expert": "42"}
                assert get(gateway, f"/dashboard/decisions/{decision}", allowed).json["id"] == decision


def test_callers_do_not_grade_themselves() -> None:
    """With ``loss = "external"`` a key that may only call marks nothing, not even its own answers."""
    with Running(MODELS, **EXTERNAL) as (gateway, _):
        for key in ("a-calls", "nameless"):
            for _ in range(5):
                assert mark(gateway, decide(gateway, key), key) == (403, "missing_role")
        status = get(gateway, "/v1/status", OPERATOR["key"]).json["routes"]["homework"]
        assert [(game["owed"], game["threshold"]) for game in status] == [(5, 0.0), (5, 0.0)]


def test_who_may_mark_what() -> None:
    """Another key of the same name, a key with both roles its own, and graders who are operators all of them."""
    with Running(MODELS, **EXTERNAL) as (gateway, _):
        assert mark(gateway, decide(gateway, "a-calls"), "a-grades") == (200, "")
        assert mark(gateway, decide(gateway, "b-both"), "b-both") == (200, "")
        for key in ("a-calls", "b-both", "nameless"):
            decision = decide(gateway, key)
            assert mark(gateway, decision, OPERATOR["key"]) == (403, "missing_role"), "to look is not to grade"
            assert mark(gateway, decision, "grades-all") == (200, "")


@pytest.mark.parametrize("path", ["/v1/status", "/metrics", "/dashboard", "/dashboard/data"])
def test_what_only_operators_see(path: str) -> None:
    """Numbers of all tenants are not for each of them."""
    with Running(MODELS, **EXTERNAL) as (gateway, _):
        for key in ("a-calls", "a-grades", "b-both", "nameless"):
            assert get(gateway, path, key).status == 403
        assert get(gateway, path, OPERATOR["key"]).status == 200
        assert get(gateway, path, "wrong").status == 401


def test_keys_that_may_not_call() -> None:
    """An operator's key in a monitoring system cannot be used to ask the models."""
    with Running(MODELS, **EXTERNAL) as (gateway, models):
        for key in (OPERATOR["key"], "a-grades"):
            got = post(gateway.url, ASK, headers=bearer(key))
            assert (got.status, got.json["error"]["code"]) == (403, "missing_role")
            assert get(gateway, "/v1/models", key).status == 200
        assert models.requests == []


def test_each_tenant_lists_its_own_decisions() -> None:
    """The list of a game that several tenants share shows each of them what was decided for it."""
    options = EXTERNAL | {"segment_by": "header:x-team"}
    with Running(MODELS, **options) as (gateway, _):
        made = {key: [decide(gateway, key) for _ in range(count)] for key, count in (("a-calls", 2), ("b-both", 3))}
        listed = {key: _listed(gateway, key) for key in ("a-calls", "b-both", "other", OPERATOR["key"])}
        assert {key: sorted(listed[key]) for key in made} == {key: sorted(names) for key, names in made.items()}
        assert listed["other"] == []
        assert len(listed[OPERATOR["key"]]) == 5


def _listed(gateway: RunningGateway, key: str) -> list[str]:
    return [told["id"] for told in get(gateway, "/dashboard/decisions?game=1", key).json["decisions"]]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("draft", "score"),
    [
        (Reply("4 1"), "mean_token_probability"),
        (Reply("4 1"), {"name": "mean_token_probability", "first_tokens": 1}),
    ],
    ids=["scored", "beginning"],
)
def test_every_decision_has_its_owner(draft: Reply, score: Any, stream: bool) -> None:
    """Whichever way it is made; in the journal stands the name, or a hash, and never the key."""
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


def test_decisions_of_an_open_time_are_for_operators(tmp_path: Any) -> None:
    """Those that were made before there were keys have no owner, and no tenant gets at them."""
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
            assert mark(gateway, decision, "b-both") == (403, "not_yours")
            assert get(gateway, f"/dashboard/decisions/{decision}", OPERATOR["key"]).status == 200
            assert mark(gateway, decision, "grades-all") == (200, "")


def test_keys_are_rotated_without_a_new_game() -> None:
    """Two keys of one name are one tenant: one segment, and the same decisions."""
    keys = [{"name": "team", "key": key, "roles": ALL_ROLES} for key in ("old", "new")]
    with Running(MODELS, gateway={"keys": keys}, loss="external", segment_by="api_key") as (gateway, _):
        decision = decide(gateway, "old")
        assert get(gateway, f"/v1/decisions/{decision}", "new").status == 200
        decide(gateway, "new")
        (game,) = get(gateway, "/v1/status", "new").json["routes"]["homework"]
        assert (game["segment"], game["steps"]) == ("team", 2)


def test_a_gateway_whose_doors_are_closed_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """With keys that may only call, nobody can look over HTTP or grade: the log says so when it starts."""
    with Running(MODELS, gateway={"api_keys": ["one"]}, loss="external"):
        pass
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [message.split(":")[0] for message in warnings] == [
        "no key has the role operator", "no key has the role feedback"
    ]  # fmt: skip
    caplog.clear()
    with Running(MODELS, gateway={"keys": [{"name": "all", "key": "one", "roles": ALL_ROLES}]}, loss="external"):
        pass
    with Running(MODELS, loss="external"):
        pass
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_named_keys_win() -> None:
    """A key that is listed with and without a name has the roles of the named one."""
    keys = ApiKeys(["one"], [KeySettings("team", "one", frozenset({Role.FEEDBACK}))], b"secret")
    identity = keys.identity(keys.digest(b"one"))
    assert identity is not None
    assert (identity.owner, identity.roles) == ("team", frozenset({Role.FEEDBACK}))


def test_no_key_can_be_read_out_of_memory_by_its_repr() -> None:
    """Configurations and keys are logged without secrets."""
    config = Config.read(settings("http://me:pass@x/v1", gateway={"keys": KEYS, "api_keys": ["nameless"]}))
    for secret in ("a-calls", "nameless", "pass", "ops-key"):
        assert secret not in repr(config)
        assert secret not in repr(config.keys)


@pytest.mark.parametrize(("key", "opens"), [("a-calls", False), ("b-both", True)], ids=["calls", "grades"])
def test_who_marks_wrong_drafts_as_right(key: str, opens: bool) -> None:
    """A key that may only call never opens a threshold for its wrong drafts; one that may grade can, within 100."""
    with Running(pair(Reply("wrong"), Reply("42")), **EXTERNAL | {"epsilon": 0.3}) as (gateway, _):
        accepted = []
        for _ in range(100):
            got = post(gateway.url, ASK, headers=bearer(key))
            accepted.append(float(got.headers["x-bpac-uncertainty"]) < float(got.headers["x-bpac-threshold"]))
            mark(gateway, got.headers["x-bpac-decision"], key)
        assert any(accepted) is opens
