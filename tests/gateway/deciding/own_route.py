"""A gateway whose one route, ``own``, decides for callers that ask their models themselves."""

from collections.abc import Mapping
from typing import Any

from tests.gateway.configured import bearer
from tests.gateway.raw import Got, post
from tests.gateway.running import RunningGateway

KEYS = [
    {"name": "team", "key": "team-key", "roles": ["call", "feedback"]},
    {"name": "caller", "key": "call-key", "roles": ["call"]},
    {"name": "other", "key": "other-key", "roles": ["call", "feedback"]},
    {"name": "ops", "key": "ops-key", "roles": ["operator"]},
]


def own(*, gateway: Any = None, **route: Any) -> dict[str, Any]:
    """Its configuration; there are no models."""
    return {
        "gateway": {"listen": "127.0.0.1:0", "store": "memory://", **(gateway or {})},
        "routes": {"own": {"decide_only": True, "epsilon": 0.2, **route}},
    }


class Client:
    """What a caller sends.

    Parameters
    ----------
    gateway: the gateway, or its URL.
    key: the API key; empty for none.
    """

    def __init__(self, gateway: RunningGateway | str, key: str = "") -> None:
        self._url = gateway if isinstance(gateway, str) else gateway.url
        self._headers = bearer(key) if key else {}

    def post(self, path: str, headers: Mapping[str, str] | None = None, **body: Any) -> Got:
        """Send a request."""
        return post(self._url, body, f"/v1/{path}", {**self._headers, **(headers or {})})

    def arrive(self, **body: Any) -> str:
        """Take a ticket."""
        got = self.post("arrive", route="own", **body)
        assert got.status == 200, got.json
        return str(got.json["ticket"])

    def decide(self, ticket: str | None = None, uncertainty: float = 0.5, **body: Any) -> dict[str, Any]:
        """Decide a ticket, or without one."""
        named: dict[str, Any] = {"route": "own"} if ticket is None else {"ticket": ticket}
        got = self.post("decide", **named, uncertainty=uncertainty, **body)
        assert got.status == 200, got.json
        reply: dict[str, Any] = got.json
        return reply

    def report(self, reply: Mapping[str, Any], loss: float) -> Got:
        """Report a loss."""
        return self.post("feedback", decision=reply["decision"], loss=loss)

    def refusal(self, path: str, **body: Any) -> tuple[int, str]:
        """Status and code of an error."""
        got = self.post(path, **body)
        return got.status, got.json["error"]["code"]

    def status(self) -> dict[str, Any]:
        """The status of the gateway."""
        found: dict[str, Any] = post(self._url, b"", "/v1/status", self._headers, "GET").json
        return found

    def game(self) -> dict[str, Any]:
        """The status of the one game."""
        (game,) = self.status()["routes"]["own"]
        assert isinstance(game, dict)
        return game
