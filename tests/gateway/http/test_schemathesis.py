"""The published OpenAPI document, tested by Schemathesis: the gateway answers as the document says."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import BaseSchema, Case, GenerationMode

from bpac.gateway.http.openapi.openapi import document
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import ALL_ROLES, bearer
from tests.gateway.configured import settings as configured
from tests.gateway.raw import CHAT, post
from tests.gateway.running import ASK, RunningGateway, pair

KEY = bearer("one")
PAGES = document(["homework"], keys=True)["paths"]
OPERATIONS = [(path, method) for path, methods in PAGES.items() for method in methods]
# Invalid requests can be made only where a request has a body or parameters.
PROOFS = [(*one, GenerationMode.POSITIVE) for one in OPERATIONS] + [
    (path, method, GenerationMode.NEGATIVE)
    for path, method in OPERATIONS
    if {"requestBody", "parameters"} & PAGES[path][method].keys()
]
# Where a request names a route; any other model does not exist.
ANSWERED = (CHAT, "/v1/responses", "/v1/messages", "/v1/messages/count_tokens")
BOUNDED = settings(
    max_examples=20, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    """A gateway that requires a key and keeps answering, whatever it is sent."""
    options = {"gateway": {"keys": [{"name": "all", "key": "one", "roles": ALL_ROLES}]}, "loss": "external"}
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(pair(Reply("41"), Reply("42"))) as models:
        config = configured(models.base_url, **options)
        config["routes"]["own"] = {"decide_only": True, "epsilon": 0.2, "max_tickets": 10**6}
        # Hundreds of wrong keys are sent here; the pauses after wrong keys have tests of their own.
        patch.setattr("bpac.gateway.auth.failed_logins.LONGEST", 0.0)
        with RunningGateway(config) as running:
            yield running
            assert post(running.url, ASK, headers=KEY).status == 200
            running.idle()


@pytest.fixture(scope="module")
def schema(gateway: RunningGateway) -> BaseSchema:
    """The document as it is published."""
    return schemathesis.openapi.from_url(f"{gateway.url}/openapi.json")


@pytest.mark.parametrize(("path", "method", "mode"), PROOFS)
def test_responses_match_the_document(schema: BaseSchema, path: str, method: str, mode: GenerationMode) -> None:
    """Statuses, headers, bodies and errors are those of the document, and none is a failure of the gateway."""

    @BOUNDED
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def check(case: Case[Any]) -> None:
        if mode is GenerationMode.POSITIVE and isinstance(case.body, dict):
            if path in ANSWERED:
                case.body["model"] = "homework"  # any other model does not exist
            if "route" in case.body:
                case.body["route"] = "own"  # nor does any other route
                case.body.pop("features", None)  # it learns from none
        case.call_and_validate(headers=KEY)

    check()


def test_a_round_from_request_to_feedback_matches_the_document(schema: BaseSchema) -> None:
    """The successful responses of every endpoint, and the responses to a second loss and to an invalid one."""

    def call(path: str, method: str, status: int, **sent: Any) -> Any:
        case = schema[path][method].Case(**sent)
        response = case.call_and_validate(headers=KEY)
        assert response.status_code == status
        return response

    for stream in (False, True):
        headers = call(CHAT, "POST", 200, body=ASK | {"stream": stream}, media_type="application/json").headers
        decision = headers["x-bpac-decision"][0]
        answers = call("/v1/decisions/{decision}", "GET", 200, path_parameters={"decision": decision}).json()
        assert answers == {"draft": "41", "expert": "42"}
        report = {"decision": decision, "loss": 0.5}
        for status in (200, 409):
            call("/v1/feedback", "POST", status, body=report, media_type="application/json")
    ticket = call("/v1/arrive", "POST", 200, body={"route": "own"}, media_type="application/json").json()["ticket"]
    draft = {"ticket": ticket, "uncertainty": 0.5, "usage": {"completion_tokens": 3}}
    for _ in range(2):
        decided = call("/v1/decide", "POST", 200, body=draft, media_type="application/json").json()
    call("/v1/withdraw", "POST", 409, body={"ticket": ticket}, media_type="application/json")
    refused = {"decision": decided["decision"], "outcome": "refused"}
    call("/v1/feedback", "POST", 200, body=refused, media_type="application/json")
    (game,) = call("/v1/status", "GET", 200).json()["routes"]["homework"]
    assert game["steps"] >= 2


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_requests_without_a_key_get_401_as_documented(gateway: RunningGateway, path: str, method: str) -> None:
    """Status 401 with the error body on every endpoint except those about health."""
    page = PAGES[path][method]
    for wrong in ({}, {"Authorization": "Bearer two"}, {"Authorization": "one"}):
        got = post(gateway.url, ASK, path, wrong, method.upper())
        assert (got.status == 401) is ("401" in page["responses"])
        assert (got.status == 200) is (page.get("security") == [])
        fields = {"message", "type", "code"} | (set() if path.startswith("/v1/messages") else {"param"})
        assert got.status == 200 or set(got.json["error"]) == fields
