"""The dashboard needs a key, and its cookie opens nothing else."""

import time
from http.cookies import SimpleCookie
from urllib.parse import quote

import pytest

from bpac.gateway.auth.cookies import COOKIE, LIFETIME, DashboardCookies
from bpac.testing import Reply
from tests.dashboard.traffic import get
from tests.gateway.configured import OPERATOR, bearer
from tests.gateway.raw import Got, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

OPERATORS = ["first", "sëcond & last"]
KEYS = {"gateway": {"keys": [OPERATOR | {"key": key} for key in OPERATORS], "api_keys": ["caller"]}}
MODELS = pair(Reply("41"), Reply("42"))
PAGES = {"": 200, "/data": 200, "/decisions?game=1": 200, "/decisions/dec-1-1-0000000000000000": 404}


def sign_in(gateway: RunningGateway, key: str, **headers: str) -> Got:
    """Post the form of the login page."""
    form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    return post(gateway.url, f"key={quote(key)}&more=1".encode(), "/dashboard/login", form)


def test_nothing_without_a_key() -> None:
    """The page shows a form, the endpoints an error; a key in the header opens every endpoint."""
    with Running(MODELS, **KEYS) as (gateway, _):
        for path, status in PAGES.items():
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"{COOKIE}=99999999999-0"}):
                got = get(gateway, path, **headers)
                assert got.status == 401
                assert "set-cookie" not in got.headers
                if path:
                    assert got.json["error"]["code"] == "invalid_api_key"
                else:
                    assert got.headers["content-type"] == "text/html; charset=utf-8"
                    assert b"/dashboard/login" in got.body
            assert get(gateway, path, Authorization="Bearer first").status == status


@pytest.mark.parametrize("key", OPERATORS)
def test_signing_in_and_out(key: str) -> None:
    """A valid key gets a cookie that scripts cannot read and that is not the key; signing out deletes it."""
    with Running(MODELS, **KEYS) as (gateway, _):
        got = sign_in(gateway, key)
        assert (got.status, got.headers["location"]) == (303, "/dashboard")
        cookie = SimpleCookie(got.headers["set-cookie"])[COOKIE]
        assert (cookie["path"], cookie["max-age"]) == ("/dashboard", str(LIFETIME))
        assert cookie["httponly"]
        assert cookie["samesite"] == "strict"
        assert key not in got.headers["set-cookie"]
        assert not cookie["secure"], "over plain HTTP a browser would not keep it"
        encrypted = sign_in(gateway, key, **{"X-Forwarded-Proto": "https"})
        assert SimpleCookie(encrypted.headers["set-cookie"])[COOKIE]["secure"]
        shown = {"Cookie": f"{COOKIE}={cookie.value}"}
        for path, status in PAGES.items():
            assert get(gateway, path, **shown).status == status
        # The cookie opens the dashboard and nothing else.
        for path in ("/metrics", "/v1/status", "/v1/models"):
            assert post(gateway.url, b"", path, shown, "GET").status == 401
        assert post(gateway.url, ASK, headers=shown).status == 401
        assert post(gateway.url, {"decision": "x", "loss": 0.5}, "/v1/feedback", shown).status == 401
        out = post(gateway.url, b"", "/dashboard/logout", shown)
        assert (out.status, out.headers["location"]) == (303, "/dashboard")
        gone = SimpleCookie(out.headers["set-cookie"])[COOKIE]
        assert (gone.value, gone["max-age"], gone["path"]) == ("", "0", "/dashboard")


def test_a_key_that_may_only_call() -> None:
    """It opens neither the dashboard nor a session, and the form says what is missing."""
    with Running(MODELS, **KEYS) as (gateway, _):
        for path in ("", "/data"):
            assert get(gateway, path, **bearer("caller")).status == 403
        got = sign_in(gateway, "caller")
        assert got.status == 403
        assert b"lacks the role operator" in got.body
        assert "set-cookie" not in got.headers
        (counted,) = gateway.service.refusals.counts.items()
        assert counted == ("missing_role", 2), "a form that is merely shown is no refusal"


def test_a_wrong_key() -> None:
    """It gets the form again with an error and no cookie; a body that is not a form is refused."""
    with Running(MODELS, **KEYS) as (gateway, _):
        for key in ("", "wrong", "first ", "firs", "x" * 500):
            got = sign_in(gateway, key)
            if key.strip() == "first":  # spaces come with copying, and no key has any
                assert got.status == 303
            else:
                assert got.status == 401
                assert "set-cookie" not in got.headers
                assert got.body != get(gateway, "").body, "it says that the key was wrong"
        login = "/dashboard/login"
        assert post(gateway.url, b"x" * 20_000, login).status == 413
        assert post(gateway.url, b"\xff\xfe", login).status == 400
        assert post(gateway.url, b"&".join([b"a=1"] * 100), login).status == 400
        assert post(gateway.url, b"", login, method="GET").status == 405


def test_an_open_gateway_needs_no_key() -> None:
    """On loopback without keys there is nothing to sign in to."""
    with Running(MODELS) as (gateway, _):
        for path, status in PAGES.items():
            assert get(gateway, path).status == status
        got = sign_in(gateway, "whatever")
        assert (got.status, got.headers["location"]) == (303, "/dashboard")
        assert "set-cookie" not in got.headers


def test_pages_are_neither_cached_nor_framed() -> None:
    """No cache keeps them, they load nothing from other sites, and no site may frame them."""
    with Running(MODELS) as (gateway, _):
        for path in ("", "/data", "/decisions?game=1"):
            got = get(gateway, path)
            assert got.headers["cache-control"] == "no-store"
            assert got.headers["x-content-type-options"] == "nosniff"
        policy = get(gateway, "").headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy


def test_passes() -> None:
    """A pass ends with its time, with its key and with its store; a forged one was never any."""
    passes = DashboardCookies(["one", "two"], b"secret")
    now = time.time()
    given = passes.give("two", now)
    assert given is not None
    assert passes.accepts(given, now)
    assert passes.accepts(given, now + LIFETIME - 2)
    assert not passes.accepts(given, now + LIFETIME + 1)
    assert DashboardCookies(["two"], b"secret").accepts(given, now)
    assert not DashboardCookies(["one"], b"secret").accepts(given, now)
    assert not DashboardCookies(["two"], b"other").accepts(given, now)
    assert not DashboardCookies([], b"secret").accepts(given, now)
    end, _, seal = given.partition("-")
    longer = f"{int(end) + 1}-{seal}"
    for forged in ("", "-", end, f"{end}-", f"{end}-{seal[:-1]}", longer, f"²-{seal}", f"{end}-é", "9" * 400 + "-x"):
        assert not passes.accepts(forged, now)
