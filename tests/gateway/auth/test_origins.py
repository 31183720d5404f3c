"""A gateway without keys cannot be used by web pages of other sites that are open in a browser on the machine."""

import json

import pytest

from bpac.gateway.auth.origins import Origins
from bpac.gateway.http.bad_request import BadRequest
from bpac.testing import Reply
from tests.gateway.configured import bearer
from tests.gateway.raw import Got, post
from tests.gateway.running import ASK, Running, RunningGateway, pair

MODELS = pair(Reply("41"), Reply("42"))
PAGES = ["/v1/status", "/metrics", "/dashboard", "/dashboard/data", "/v1/models", "/healthz", "/openapi.json"]


def get(gateway: RunningGateway, path: str, **headers: str) -> Got:
    """Get a page with headers."""
    return post(gateway.url, b"", path, headers, "GET")


def code(got: Got) -> tuple[int, str]:
    """The status and the code of an error."""
    return got.status, got.json["error"]["code"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "localhost.", "x@localhost"]
)
def test_requests_to_another_host_name_are_rejected(host: str) -> None:
    """A page that points its own name at this machine (DNS rebinding) reads nothing, and no model is called."""
    with Running(MODELS) as (gateway, models):
        name = host.format(port=gateway.port)
        for path in PAGES:
            assert code(get(gateway, path, Host=name)) == (403, "host_not_allowed")
        assert code(post(gateway.url, ASK, headers={"Host": name})) == (403, "host_not_allowed")
        assert models.requests == []
        assert gateway.service.rejections.counts == {"host_not_allowed": len(PAGES) + 1}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:{port}", "127.0.0.1:{port}", "[::1]:{port}", "[::1]"])
def test_names_of_this_machine_are_accepted(host: str) -> None:
    """With and without a port."""
    with Running(MODELS) as (gateway, _):
        for path in PAGES:
            assert get(gateway, path, Host=host.format(port=gateway.port)).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1", ""])
def test_requests_with_another_origin_are_rejected(origin: str) -> None:
    """Be it another site, another port or an origin that the browser hides."""
    with Running(MODELS) as (gateway, models):
        assert code(post(gateway.url, ASK, headers={"Origin": origin})) == (403, "origin_not_allowed")
        assert models.requests == []
        own = {"Origin": f"http://127.0.0.1:{gateway.port}"}
        assert post(gateway.url, ASK, headers=own).status == 200
        assert get(gateway, "/dashboard/data", **own).status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "text/json"]
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/feedback"])
def test_bodies_that_an_html_form_can_send_are_rejected(kind: str, path: str) -> None:
    """A form needs no permission to be sent to another site, but it cannot be application/json."""
    with Running(MODELS) as (gateway, models):
        got = post(gateway.url, ASK, path, {"Content-Type": kind})
        assert code(got) == (415, "not_json")
        assert models.requests == []
    for fine in ("application/json", "Application/JSON; charset=utf-8"):
        Origins("127.0.0.1").check("POST", path, [(b"host", b"localhost"), (b"content-type", fine.encode())])


def test_a_gateway_with_keys_checks_neither_name_nor_content_type() -> None:
    """It may be behind any name; web pages of other sites do not know its key."""
    with Running(MODELS, gateway={"api_keys": ["one"]}) as (gateway, _):
        headers = bearer("one") | {"Host": "api.example", "Content-Type": "text/plain"}
        assert post(gateway.url, ASK, headers=headers).status == 200


def test_the_name_that_the_gateway_listens_on_is_accepted() -> None:
    """Be it a name or an address; no name and two names are rejected."""
    for host, shown in (("gateway.local", b"Gateway.Local:8800"), ("::1", b"[::1]:1"), ("127.0.0.2", b"127.0.0.2")):
        Origins(host).check("GET", "/metrics", [(b"host", shown)])
    for headers in ([], [(b"host", b"localhost"), (b"host", b"evil.example")]):
        with pytest.raises(BadRequest, match="its own name"):
            Origins("127.0.0.1").check("GET", "/metrics", headers)


def test_rejections_have_the_error_body_of_openai() -> None:
    """With a type that says what kind of error it is."""
    with Running(MODELS) as (gateway, _):
        got = post(gateway.url, json.dumps(ASK).encode(), headers={"Host": "evil.example"})
        assert set(got.json["error"]) == {"message", "type", "param", "code"}
        assert got.json["error"]["type"] == "permission_error"
