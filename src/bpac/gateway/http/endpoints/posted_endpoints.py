"""The endpoints that are not behind Starlette, by their path: all to which callers send prompts."""

from bpac.gateway.auth.authentication import Authentication
from bpac.gateway.http.doors.count_tokens import CountTokensEndpoint
from bpac.gateway.http.doors.door import ChatDoor, Door
from bpac.gateway.http.doors.other_doors import MessagesDoor, ResponsesDoor
from bpac.gateway.http.endpoints.chat import PATH, ChatEndpoint
from bpac.gateway.http.endpoints.pass_through import PassThroughEndpoint
from bpac.gateway.http.endpoints.posting import AnsweringService, PostEndpoint
from bpac.gateway.opening import PASSED_THROUGH

DOORS: dict[str, Door] = {
    PATH: ChatDoor(),
    "/v1/responses": ResponsesDoor(),
    "/v1/messages": MessagesDoor(),
}


def posted_endpoints(service: AnsweringService, authentication: Authentication) -> dict[str, PostEndpoint]:
    """The endpoints by their path.

    Parameters
    ----------
    service: answers requests.
    authentication: finds out who sends a request.
    """
    return {
        **{path: ChatEndpoint(door, service, authentication) for path, door in DOORS.items()},
        **{f"/v1{path}": PassThroughEndpoint(path, service, authentication) for path in PASSED_THROUGH},
        "/v1/messages/count_tokens": CountTokensEndpoint(service, authentication),
    }
