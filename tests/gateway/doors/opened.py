"""A gateway with a route of each kind, and the official clients of every door."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from anthropic import Anthropic
from pydantic import BaseModel

from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import ALL_ROLES
from tests.gateway.running import RunningGateway, pair

KEY = "one"
DRAFT = Reply("It is 42, I think", probability=0.8)
EXPERT = Reply("It is 42", reasoning="six times seven", probability=0.99)
ADD: Any = {"id": "call-1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
CALLS = Reply("", tool_calls=(ADD,), finish_reason="tool_calls")
PIXEL = "iVBORw0KGgo="


class Point(BaseModel):
    """A structured answer."""

    x: int
    y: int


class Opened(NamedTuple):
    """A running gateway, its models, and clients with a valid key, whose requests are plain dictionaries here."""

    gateway: RunningGateway
    models: ScriptedServer
    openai: Any
    anthropic: Any

    def play(self, expert: Any, draft: Any = DRAFT) -> None:
        """Have the models answer in another way from now on."""
        self.gateway.idle()
        self.models.script = pair(draft, expert)
        self.models.requests.clear()

    def asked(self, model: str = "expert") -> dict[str, Any]:
        """The last request that a model got."""
        self.gateway.idle()
        found = [request.body for request in self.models.requests if request.body["model"] == model]
        return dict(found[-1])


APIS = ("chat", "responses", "messages")


def reached_at(base_url: str) -> dict[str, Any]:
    """Settings of a model that is there at once, or not at all."""
    return {"base_url": base_url, "timeout": 60.0, "retries": 0, "backoff": 0.01, "breaker": 0}


def pairs(base_url: str) -> dict[str, Any]:
    """A model for drafts and one for experts behind each API."""
    ours = reached_at(base_url)
    names = {"small": "draft", "large": "expert"}
    return {f"{size}-{api}": {**ours, "model": name, "api": api} for api in APIS for size, name in names.items()}


def score_with(api: str) -> dict[str, Any]:
    """A score that drafts behind an API can have."""
    return {"name": "verbalized" if api == "messages" else "perplexity", "otherwise": 0.5}


@contextmanager
def opened_with(config: Callable[[str], dict[str, Any]]) -> Iterator[Opened]:
    """Open a gateway whose configuration follows from the address of its models."""
    with (
        ScriptedServer(pair(DRAFT, EXPERT)) as models,
        RunningGateway(config(models.base_url)) as running,
        Anthropic(base_url=running.url, api_key=KEY, max_retries=0, timeout=60.0) as client,
    ):
        yield Opened(running, models, running.client(KEY), client)


@contextmanager
def opened(**gateway: Any) -> Iterator[Opened]:
    """Open a gateway: the route ``homework`` asks the expert, ``kept`` keeps drafts, ``single`` has one model."""
    with ScriptedServer(pair(DRAFT, EXPERT)) as models:
        ours = reached_at(models.base_url)
        route = {"draft": "small", "expert": "large", "epsilon": 0.2}
        score = {"name": "perplexity", "otherwise": 0.5}
        keys = [
            {"name": "all", "key": KEY, "roles": ALL_ROLES},
            {"name": "metered", "key": "two", "roles": ["call"], "tokens_per_day": 1_000_000},
        ]
        config: dict[str, Any] = {
            "gateway": {"listen": "127.0.0.1:0", "store": "memory://", "probe": False, "keys": keys, **gateway},
            "models": {"small": {**ours, "model": "draft"}, "large": {**ours, "model": "expert"}},
            "routes": {
                "homework": {**route, "policy": "always", "score": score},
                "kept": {**route, "policy": "never", "score": score},
                "early": {**route, "policy": "never", "score": {**score, "first_tokens": 2}},
                "divided": {**route, "policy": "always", "score": score, "segment_by": "user"},
                "labelled": {**route, "policy": "always", "score": score, "segment_by": "metadata:team"},
                "single": {"expert": "large"},
            },
        }
        with (
            RunningGateway(config) as running,
            Anthropic(base_url=running.url, api_key=KEY, max_retries=0, timeout=60.0) as anthropic,
        ):
            yield Opened(running, models, running.client(KEY), anthropic)
