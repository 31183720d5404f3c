"""Cross-origin requests: which pages may use the API, and that the others and the dashboard stay closed."""

from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.testing import Reply
from tests.gateway.configured import ALL_ROLES, bearer, settings
from tests.gateway.raw import CHAT, Got, post
from tests.gateway.running import ASK, Running

PAGE = "https://app.example.org"
KEYS: Any = [{"name": "page", "key": "page-key", "roles": ALL_ROLES}]


def preflight(url: str, origin: str = PAGE, path: str = CHAT) -> Got:
    """What a browser sends before a page of another origin may send JSON."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    return post(url, b"", path, headers, "OPTIONS")


@pytest.mark.parametrize("keys", [[], KEYS])
def test_a_listed_page_may_use_the_api(keys: Any) -> None:
    """Preflight, answer and error are all readable for the page, with the gateway's headers."""
    with Running(Reply("42"), gateway={"cors_origins": [PAGE], "keys": keys}) as (gateway, _):
        asked = preflight(gateway.url)
        assert (asked.status, asked.headers["access-control-allow-origin"]) == (204, PAGE)
        assert asked.headers["access-control-allow-headers"] == "authorization,content-type"
        assert "POST" in asked.headers["access-control-allow-methods"]
        sent = {"Origin": PAGE, **bearer("page-key")}
        for got, status in (
            (post(gateway.url, ASK, headers=sent), 200),
            (post(gateway.url, {**ASK, "stream": True}, headers=sent), 200),
            (post(gateway.url, {}, headers=sent), 400),
            (post(gateway.url, {"decision": "x", "loss": 0}, "/v1/feedback", sent), 404),
        ):
            assert (got.status, got.headers["access-control-allow-origin"]) == (status, PAGE)
            assert "x-bpac-decision" in got.headers["access-control-expose-headers"]
            assert got.headers["vary"] == "Origin"
            assert "access-control-allow-credentials" not in got.headers


@pytest.mark.parametrize("origin", ["https://evil.example.org", "http://app.example.org", f"{PAGE}:8443", "null"])
def test_other_pages_may_not(origin: str) -> None:
    """A page whose origin differs in any part is not allowed; an open gateway refuses its requests."""
    with Running(Reply("42"), gateway={"cors_origins": [PAGE], "keys": KEYS}) as (gateway, _):
        assert "access-control-allow-origin" not in preflight(gateway.url, origin).headers
        got = post(gateway.url, ASK, headers={"Origin": origin, **bearer("page-key")})
        assert "access-control-allow-origin" not in got.headers
    with Running(Reply("42"), gateway={"cors_origins": [PAGE]}) as (gateway, models):
        assert preflight(gateway.url, origin).status == 403
        assert post(gateway.url, ASK, headers={"Origin": origin}).status == 403
        assert not models.requests


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/data", "/metrics", "/healthz"])
def test_the_dashboard_is_never_allowed(path: str) -> None:
    """A page of a listed origin cannot read what is not under /v1."""
    with Running(Reply("42"), gateway={"cors_origins": ["*"], "keys": KEYS}) as (gateway, _):
        for method in ("GET", "OPTIONS"):
            headers = {"Origin": PAGE, "Access-Control-Request-Method": "GET", **bearer("page-key")}
            got = post(gateway.url, b"", path, headers, method)
            assert not [name for name in got.headers if name.startswith("access-control")]
    with Running(Reply("42"), gateway={"cors_origins": [PAGE]}) as (gateway, _):
        assert post(gateway.url, b"", path, {"Origin": PAGE}, "GET").status == 403


def test_any_origin_needs_keys() -> None:
    """With * every page may call, with a key; a gateway without keys would be open to every page, and is refused."""
    with Running(Reply("42"), gateway={"cors_origins": ["*"], "keys": KEYS}) as (gateway, _):
        assert preflight(gateway.url).headers["access-control-allow-origin"] == "*"
        assert post(gateway.url, ASK, headers={"Origin": PAGE}).status == 401
        got = post(gateway.url, ASK, headers={"Origin": PAGE, **bearer("page-key")})
        assert (got.status, got.headers["access-control-allow-origin"]) == (200, "*")
    with pytest.raises(SettingsError, match="cors_origins"):
        Config.read(settings("http://127.0.0.1:9/v1", gateway={"cors_origins": ["*"]}))


@pytest.mark.parametrize("origin", ["app.example.org", f"{PAGE}/path", "https://*.example.org", "ftp://a", "", 3])
def test_what_is_no_origin_is_refused(origin: Any) -> None:
    """An origin with a path, or with a pattern, would never match: the mistake is found at the start."""
    with pytest.raises(SettingsError, match="cors_origins"):
        Config.read(settings("http://127.0.0.1:9/v1", gateway={"cors_origins": [origin]}))


def test_without_the_setting_nothing_changes() -> None:
    """No preflight is answered, and no response has a header of CORS."""
    with Running(Reply("42"), gateway={"keys": KEYS}) as (gateway, _):
        assert preflight(gateway.url).status == 405
        got = post(gateway.url, ASK, headers={"Origin": PAGE, **bearer("page-key")})
        assert got.status == 200
        assert not [name for name in got.headers if name.startswith("access-control")]
