"""The clients that are tested: the API that each uses, what it can do, and the program that runs it.

Programs in other environments import this: standard library only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

DOORS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}

# The capabilities, each with the number of requests that checking it takes; a tool's result is a second request.
CAPABILITIES = {
    "text": 1,
    "stream": 1,
    "tools_whole": 2,
    "tools_streamed": 2,
    "structured": 1,
    "headers": 1,
    "error": 0,
    "count_tokens": 0,
}
ALL = ("text", "stream", "tools_whole", "tools_streamed", "structured", "headers", "error")
NO_HEADERS = tuple(capability for capability in ALL if capability != "headers")

NO_ERROR = tuple(capability for capability in ALL if capability != "error")
ANSWERS = NO_HEADERS[:-1]


class Cell(NamedTuple):
    """One capability of a client by one API."""

    client: str
    door: str
    capability: str


@dataclass(frozen=True)
class Row:
    """A client by one API.

    Parameters
    ----------
    client: its name, as its users know it.
    door: the API, a key of ``DOORS``.
    program: the program that checks it, in ``programs`` or, for JavaScript, in ``node``.
    setting: what its users set so that it uses the gateway, whose address is written as ``…``.
    can: its capabilities.
    more: further requests of its checks on one route, for example because structured output is asked for in two ways.
    routes: the two routes whose draft and whose expert answers, for a client that accepts only names that it knows.
    """

    client: str
    door: str
    program: str
    setting: str
    can: tuple[str, ...] = ALL
    more: int = 0
    routes: tuple[str, str] = ("", "")

    def route(self, who: str) -> str:
        """The route that the client asks for, of its own for each API; the draft or the expert answers on it.

        >>> Row("openai (Python)", "chat", "", "").route("draft")
        'openai-python-chat-draft'
        """
        own = re.sub(r"[^a-z]+", "-", f"{self.client} {self.door} {who}".lower()).strip("-")
        return self.routes[who == "expert"] or own

    @property
    def rounds(self) -> int:
        """The number of requests that all checks of it make on one route."""
        return sum(CAPABILITIES[capability] for capability in self.can) + self.more

    def cells(self) -> Iterator[Cell]:
        """Its capabilities."""
        for capability in self.can:
            yield Cell(self.client, self.door, capability)


# The programs; clients in one program are loaded together. Other clients need older versions of the official ones.
_OFFICIAL = "official_clients"
_FRAMEWORKS, _INDEXES, _JAVASCRIPT = "agents_and_frameworks", "indexes_and_proxies", "javascript"
_OBJECTS = ("stream", "structured", "error")

ROWS = [
    Row("openai (Python)", "chat", _OFFICIAL, 'OpenAI(base_url="…/v1")'),
    Row("openai (Python)", "responses", _OFFICIAL, 'OpenAI(base_url="…/v1")'),
    Row("openai (JavaScript)", "chat", _JAVASCRIPT, 'new OpenAI({ baseURL: "…/v1" })'),
    Row("openai (JavaScript)", "responses", _JAVASCRIPT, 'new OpenAI({ baseURL: "…/v1" })'),
    Row("anthropic (Python)", "messages", _OFFICIAL, 'Anthropic(base_url="…")', (*ALL, "count_tokens")),
    Row("anthropic (JavaScript)", "messages", _JAVASCRIPT, 'new Anthropic({ baseURL: "…" })', (*ALL, "count_tokens")),
    Row("ai + @ai-sdk/openai", "responses", _JAVASCRIPT, 'createOpenAI({ baseURL: "…/v1" })(ROUTE)'),
    Row("ai + @ai-sdk/openai", "chat", _JAVASCRIPT, 'createOpenAI({ baseURL: "…/v1" }).chat(ROUTE)'),
    Row(
        "ai + @ai-sdk/openai-compatible",
        "chat",
        _JAVASCRIPT,
        'createOpenAICompatible({ name: "bpac", baseURL: "…/v1", supportsStructuredOutputs: true })(ROUTE)',
    ),
    Row("ai + @ai-sdk/anthropic", "messages", _JAVASCRIPT, 'createAnthropic({ baseURL: "…/v1" })(ROUTE)'),
    Row(
        "openai-agents",
        "responses",
        _FRAMEWORKS,
        'set_default_openai_client(AsyncOpenAI(base_url="…/v1"))',
        NO_HEADERS,
    ),
    Row(
        "openai-agents",
        "chat",
        _FRAMEWORKS,
        'set_default_openai_client(AsyncOpenAI(base_url="…/v1")); set_default_openai_api("chat_completions")',
        NO_HEADERS,
    ),
    Row("LangChain ChatOpenAI", "chat", _FRAMEWORKS, 'ChatOpenAI(base_url="…/v1")'),
    Row("LangChain ChatOpenAI", "responses", _FRAMEWORKS, 'ChatOpenAI(base_url="…/v1", use_responses_api=True)'),
    Row("LangChain ChatAnthropic", "messages", _FRAMEWORKS, 'ChatAnthropic(base_url="…")', NO_HEADERS),
    Row(
        "Pydantic AI",
        "chat",
        _FRAMEWORKS,
        'OpenAIChatModel(ROUTE, provider=OpenAIProvider(base_url="…/v1"))',
        NO_HEADERS,
        more=1,
    ),
    Row(
        "Pydantic AI",
        "responses",
        _FRAMEWORKS,
        'OpenAIResponsesModel(ROUTE, provider=OpenAIProvider(base_url="…/v1"))',
        NO_HEADERS,
        more=1,
    ),
    Row(
        "Pydantic AI",
        "messages",
        _FRAMEWORKS,
        'AnthropicModel(ROUTE, provider=AnthropicProvider(base_url="…"))',
        NO_HEADERS,
    ),
    Row("Instructor", "chat", _FRAMEWORKS, 'from_openai(OpenAI(base_url="…/v1"))', _OBJECTS, more=2),
    Row(
        "Instructor",
        "responses",
        _FRAMEWORKS,
        'from_openai(OpenAI(base_url="…/v1"), mode=Mode.RESPONSES_TOOLS)',
        _OBJECTS,
    ),
    Row("Instructor", "messages", _FRAMEWORKS, 'from_anthropic(Anthropic(base_url="…"))', _OBJECTS),
    Row(
        "LlamaIndex OpenAILike",
        "chat",
        _INDEXES,
        'OpenAILike(api_base="…/v1", is_chat_model=True, is_function_calling_model=True)',
        NO_HEADERS,
    ),
    Row(
        "LlamaIndex OpenAILikeResponses",
        "responses",
        _INDEXES,
        'OpenAILikeResponses(api_base="…/v1", is_function_calling_model=True)',
        NO_HEADERS,
    ),
    Row(
        "LlamaIndex OpenAI",
        "chat",
        _INDEXES,
        'OpenAI(api_base="…/v1")',
        NO_HEADERS,
        routes=("gpt-4o-mini", "gpt-4o"),
    ),
    Row(
        "LlamaIndex Anthropic",
        "messages",
        _INDEXES,
        'Anthropic(base_url="…")',
        NO_HEADERS,
        routes=("claude-haiku-4-5", "claude-opus-4-5"),
    ),
    Row("LiteLLM", "chat", _INDEXES, 'completion("openai/ROUTE", api_base="…/v1")'),
    Row("LiteLLM", "responses", _INDEXES, 'completion("openai/responses/ROUTE", api_base="…/v1")'),
    Row("LiteLLM", "messages", _INDEXES, 'completion("anthropic/ROUTE", api_base="…")'),
    Row("LiteLLM proxy", "chat", _INDEXES, '{model: openai/ROUTE, api_base: "…/v1"}', NO_ERROR),
    Row("LiteLLM proxy", "responses", _INDEXES, '{model: openai/ROUTE, api_base: "…/v1"}', NO_ERROR),
    Row("LiteLLM proxy", "messages", _INDEXES, '{model: anthropic/ROUTE, api_base: "…"}', ANSWERS),
    Row("llm", "chat", _INDEXES, '{model_name: ROUTE, api_base: "…/v1"}', NO_HEADERS),
    Row("llm", "responses", _INDEXES, '{model_name: ROUTE, api_base: "…/v1", responses: true}', NO_HEADERS),
]
