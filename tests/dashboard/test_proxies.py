"""The dashboard behind a reverse proxy: under a sub-path, by HTTPS, and with headers that callers forge."""

from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from bpac.errors import SettingsError
from bpac.gateway.auth.cookies import COOKIE
from bpac.gateway.auth.proxies import TrustedProxies
from bpac.gateway.config.file import Config
from bpac.testing import Reply
from tests.dashboard.browser import Visit
from tests.dashboard.reverse_proxy import ReverseProxy, certificate
from tests.dashboard.test_keys import sign_in
from tests.gateway.configured import ALL_ROLES, bearer, settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway, pair

KEY = "the operator's key"
KEYS = [{"name": "all", "key": KEY, "roles": ALL_ROLES}]
MODELS = pair(Reply("41"), Reply("42"))


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the proxy."""
    return certificate(tmp_path_factory.mktemp("tls"))


def running(**gateway: Any) -> Running:
    """A gateway with an operator's key."""
    return Running(MODELS, gateway={"keys": KEYS, **gateway})


@pytest.mark.parametrize("strip", [True, False], ids=["prefix removed", "prefix kept"])
@pytest.mark.parametrize("prefix", ["", "/tools/bpac"], ids=["root", "sub-path"])
def test_signing_in_through_a_tls_proxy(browser: Browser, pem: Path, prefix: str, strip: bool) -> None:
    """Wrong key, right key, figures, a decision, sign out: everything stays under the prefix, the cookie is Secure."""
    with (
        running(root_path="" if strip else prefix) as (gateway, _),
        ReverseProxy(gateway.port, pem, prefix, strip=strip) as proxy,
        Visit(browser, any_certificate=True) as visit,
    ):
        assert post(gateway.url, ASK, headers=bearer(KEY)).status == 200
        gateway.idle()
        page = visit.page
        page.goto(f"{proxy.url}/dashboard/")
        expect(page).to_have_url(f"{proxy.url}/dashboard")
        page.get_by_label("Key").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("This is not a valid API key of this gateway.")
        page.get_by_label("Key").fill(KEY)
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("h1")).to_have_text("homework ")
        assert page.url == f"{proxy.url}/dashboard"
        (cookie,) = visit.context.cookies()
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
        assert cookie["path"] == f"{prefix}/dashboard"
        assert visit.value("steps") == 1
        page.locator("tr[data-decision] a").click()
        expect(page.locator("h1")).to_have_text("Request 1")
        page.reload()
        expect(page.locator("h1")).to_have_text("Request 1")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Key")).to_be_visible()
        assert page.url == f"{proxy.url}/dashboard"
        assert visit.context.cookies() == []
        assert all(url.startswith((f"{proxy.url}/dashboard", "data:")) for url in visit.requests)
        assert all("401" in trouble for trouble in visit.forgive(for_good=True))


def test_plain_http_behind_a_proxy(browser: Browser) -> None:
    """Without TLS the cookie is not Secure, or the browser would not keep it: signing in works."""
    with running() as (gateway, _), ReverseProxy(gateway.port, None, "/x") as proxy, Visit(browser) as visit:
        visit.page.goto(f"{proxy.url}/dashboard")
        visit.page.get_by_label("Key").fill(KEY)
        visit.page.get_by_role("button", name="Sign in").click()
        expect(visit.page.locator("h1")).to_have_text("homework ")
        (cookie,) = visit.context.cookies()
        assert (cookie["secure"], cookie["path"]) == (False, "/x/dashboard")
        assert all("401" in trouble for trouble in visit.forgive(for_good=True))


def secure(gateway: RunningGateway, **headers: str) -> bool:
    """Whether signing in sets a Secure cookie."""
    got = sign_in(gateway, KEY, **{name.replace("_", "-"): value for name, value in headers.items()})
    assert (got.status, got.headers["location"]) == (303, "../dashboard")
    return bool(SimpleCookie(got.headers["set-cookie"])[COOKIE]["secure"])


def test_headers_that_callers_forge() -> None:
    """Only the last value of a trusted proxy counts; no header chooses the address that the browser goes to."""
    with running() as (gateway, _):
        assert secure(gateway, X_Forwarded_Proto="https")
        assert secure(gateway, X_Forwarded_Proto="http, HTTPS")
        assert not secure(gateway, X_Forwarded_Proto="https, http")
        assert not secure(gateway, X_Forwarded_Proto="")
        assert not secure(gateway, X_Forwarded_Ssl="on", Forwarded="proto=https", Front_End_Https="on")
        # Where it leads and what the page contains is the same whatever these say.
        forged = {"X-Forwarded-Prefix": "//evil.example", "X-Forwarded-Host": "evil.example", "Host": "evil.example"}
        got = sign_in(gateway, KEY, **forged)
        assert got.headers["location"] == "../dashboard"
        slash = post(gateway.url, b"", "/dashboard/", forged, "GET")
        assert (slash.status, slash.headers["location"]) == (307, "../dashboard")
        shown = post(gateway.url, b"", "/dashboard", forged | bearer(KEY), "GET")
        assert shown.status == 200
        assert b"evil.example" not in shown.body
    with running(trusted_proxies=["192.0.2.0/24"]) as (gateway, _):
        assert not secure(gateway, X_Forwarded_Proto="https")
    with running(trusted_proxies=[]) as (gateway, _):
        assert not secure(gateway, X_Forwarded_Proto="https")


def test_which_addresses_are_trusted() -> None:
    """Addresses and networks of both versions, IPv4 in IPv6 too; nothing without an address."""
    proxies = TrustedProxies(["10.0.0.0/8", "2001:db8::1"])
    headers = [(b"x-forwarded-proto", b"https")]
    trusted = {"10.1.2.3": True, "::ffff:10.1.2.3": True, "2001:db8::1": True, "2001:db8::2": False, "11.0.0.1": False}
    for address, expected in (trusted | {"": False, "nonsense": False}).items():
        scope = {"scheme": "http", "client": (address, 1), "headers": headers}
        assert proxies.used_https(scope) == expected, address
    assert not proxies.used_https({"scheme": "http", "client": None, "headers": headers})
    assert proxies.used_https({"scheme": "https", "client": None, "headers": []})


def test_a_root_path_is_for_every_endpoint() -> None:
    """Requests with it and without it are answered alike; another prefix is not, and neither is half of it."""
    with Running(MODELS, gateway={"root_path": "/tools/bpac"}) as (gateway, _):
        for prefix in ("/tools/bpac", ""):
            assert post(gateway.url, ASK, f"{prefix}/v1/chat/completions").status == 200
            for path in ("/readyz", "/v1/status", "/dashboard", "/dashboard/data"):
                assert post(gateway.url, b"", prefix + path, method="GET").status == 200
        for path in ("/tools/readyz", "/tools/bpacs/readyz", "/tools/bpac", "/tools/bpacreadyz"):
            assert post(gateway.url, b"", path, method="GET").status == 404
        gateway.idle()


@pytest.mark.parametrize("path", ["bpac", "/", "/bpac/", "//evil.example", "/a b", "/a/../b?", "/ä"])
def test_a_root_path_that_is_none(path: str) -> None:
    """It is refused at the start, with what it should look like."""
    with pytest.raises(SettingsError, match="root_path must begin with / and not end with it, such as /bpac"):
        Config.read(settings("http://127.0.0.1:1/v1", gateway={"root_path": path}))


def test_a_proxy_that_is_no_address() -> None:
    """It is refused at the start, with an example."""
    for wrong in ("proxy.example", "10.0.0.1/8", "*"):
        with pytest.raises(SettingsError, match="is neither an IP address nor a network"):
            Config.read(settings("http://127.0.0.1:1/v1", gateway={"trusted_proxies": [wrong]}))
