"""The dashboard needs a key; signing in gives a cookie that is good for the dashboard and nothing else."""

import time
from http.cookies import SimpleCookie
from urllib.parse import quote

import pytest
from itsdangerous import TimestampSigner
from itsdangerous.encoding import base64_decode, base64_encode, bytes_to_int, int_to_bytes

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


def test_nothing_is_shown_without_a_key() -> None:
    """The page is a login form, its data an error; with a key in the header each page is shown."""
    with Running(MODELS, **KEYS) as (gateway, _):
        for path, status in PAGES.items():
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"{COOKIE}=operator.99999999999.0"}):
                got = get(gateway, path, **headers)
                assert got.status == 401
                assert "set-cookie" not in got.headers
                if path:
                    assert got.json["error"]["code"] == "invalid_api_key"
                else:
                    assert got.headers["content-type"] == "text/html; charset=utf-8"
                    assert b'action="dashboard/login"' in got.body
            assert get(gateway, path, Authorization="Bearer first").status == status


@pytest.mark.parametrize("key", OPERATORS)
def test_signing_in_sets_a_cookie_for_the_dashboard_only(key: str) -> None:
    """The cookie is not the key, scripts and other sites cannot use it, and signing out deletes it."""
    with Running(MODELS, **KEYS) as (gateway, _):
        got = sign_in(gateway, key)
        assert (got.status, got.headers["location"]) == (303, "../dashboard")
        cookie = SimpleCookie(got.headers["set-cookie"])[COOKIE]
        # Without a path it is valid for the directory of the login form, /dashboard, whatever is before that.
        assert (cookie["path"], cookie["domain"], cookie["max-age"]) == ("", "", str(LIFETIME))
        assert cookie["httponly"]
        assert cookie["samesite"] == "strict"
        assert key not in got.headers["set-cookie"]
        assert not cookie["secure"], "over plain HTTP a browser would not keep it"
        encrypted = sign_in(gateway, key, **{"X-Forwarded-Proto": "https"})
        assert SimpleCookie(encrypted.headers["set-cookie"])[COOKIE]["secure"]
        signed_in = {"Cookie": f"{COOKIE}={cookie.value}"}
        for path, status in PAGES.items():
            assert get(gateway, path, **signed_in).status == status
        # No other endpoint accepts it.
        for path in ("/metrics", "/v1/status", "/v1/models"):
            assert post(gateway.url, b"", path, signed_in, "GET").status == 401
        assert post(gateway.url, ASK, headers=signed_in).status == 401
        assert post(gateway.url, {"decision": "x", "loss": 0.5}, "/v1/feedback", signed_in).status == 401
        out = post(gateway.url, b"", "/dashboard/logout", signed_in)
        assert (out.status, out.headers["location"]) == (303, "../dashboard")
        gone = SimpleCookie(out.headers["set-cookie"])[COOKIE]
        assert (gone.value, gone["max-age"], gone["path"]) == ("", "0", "")


def test_a_key_without_the_role_operator_cannot_sign_in() -> None:
    """The form says which role is missing, and sets no cookie."""
    with Running(MODELS, **KEYS) as (gateway, _):
        for path in ("", "/data"):
            assert get(gateway, path, **bearer("caller")).status == 403
        got = sign_in(gateway, "caller")
        assert got.status == 403
        assert b"lacks the role operator" in got.body
        assert "set-cookie" not in got.headers
        (counted,) = gateway.service.rejections.counts.items()
        assert counted == ("missing_role", 2), "showing the form is not a rejection"


def test_a_wrong_key_cannot_sign_in() -> None:
    """The form is shown again and says so, without a cookie; a body that is not a form is an error."""
    with Running(MODELS, **KEYS) as (gateway, _):
        for key in ("", "wrong", "first ", "firs", "x" * 500):
            got = sign_in(gateway, key)
            if key.strip() == "first":  # copying may add spaces, and no key has any
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


def test_an_open_gateway_needs_no_login() -> None:
    """On loopback without keys every page is shown, and signing in sets no cookie."""
    with Running(MODELS) as (gateway, _):
        for path, status in PAGES.items():
            assert get(gateway, path).status == status
        got = sign_in(gateway, "any")
        assert (got.status, got.headers["location"]) == (303, "../dashboard")
        assert "set-cookie" not in got.headers


def test_pages_are_neither_cached_nor_framed() -> None:
    """No cache keeps them, they load nothing from other sites, and no page may frame them."""
    with Running(MODELS) as (gateway, _):
        for path in ("", "/data", "/decisions?game=1"):
            got = get(gateway, path)
            assert got.headers["cache-control"] == "no-store"
            assert got.headers["x-content-type-options"] == "nosniff"
        policy = get(gateway, "").headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy


def at(monkeypatch: pytest.MonkeyPatch, now: float) -> None:
    """Set the clock of the signatures."""
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: int(now))


def test_a_cookie_is_valid_for_its_lifetime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve hours after it was issued it is no longer accepted, and one from the future is not either."""
    cookies, now = DashboardCookies(["one", "two"], b"secret"), time.time()
    at(monkeypatch, now)
    cookie = cookies.issue("two")
    assert cookie is not None
    for later, valid in ((0, True), (LIFETIME - 2, True), (LIFETIME + 1, False), (10 * LIFETIME, False), (-60, False)):
        at(monkeypatch, now + later)
        assert cookies.accepts(cookie) is valid


def test_a_cookie_is_valid_as_long_as_its_key_and_its_store() -> None:
    """It survives a restart; it ends when its key is removed from the configuration, and with its store."""
    cookie = DashboardCookies(["one", "two"], b"secret").issue("two")
    assert cookie is not None
    assert DashboardCookies(["two"], b"secret").accepts(cookie)
    assert DashboardCookies(["three", "two"], b"secret").accepts(cookie)
    assert not DashboardCookies(["one"], b"secret").accepts(cookie)
    assert not DashboardCookies(["two"], b"other").accepts(cookie)
    assert not DashboardCookies([], b"secret").accepts(cookie)


def test_a_cookie_cannot_be_forged() -> None:
    """Neither its time nor its signature can be changed, nor can a cookie be made without the store's secret."""
    cookies = DashboardCookies(["one"], b"secret")
    cookie = cookies.issue("one")
    assert cookie is not None
    value, issued, signature = cookie.split(".")
    later = base64_encode(int_to_bytes(bytes_to_int(base64_decode(issued)) + 1)).decode()
    unkeyed = TimestampSigner("one", "one").sign(value).decode()
    forged = ["", ".", "..", issued, f"{value}.{issued}", f"{value}.{issued}.", f"{value}.{later}.{signature}"]
    forged += [f"{value}.{issued}.{signature[:-1]}", f"other.{issued}.{signature}", f"{value}..{signature}", unkeyed]
    forged += [
        f"{value}.{issued}.{signature[::-1]}",
        f"{value}.{issued}.é",
        f"²{cookie}",
        "9" * 400 + cookie,
        f"{cookie}.{signature}",
    ]
    assert not [text for text in forged if cookies.accepts(text)]
    assert cookies.accepts(cookie)


def test_a_cookie_reveals_neither_key_nor_secret() -> None:
    """It is a word, a time and a signature, and only operators get one."""
    cookies = DashboardCookies(["one"], b"secret")
    cookie = cookies.issue("one")
    assert cookie is not None
    assert cookie.split(".")[0] == "operator"
    assert "one" not in cookie
    assert "secret" not in cookie
    assert cookies.issue("two") is None
    assert cookies.issue("") is None
