"""LiteLLM: its library, and its proxy, which official clients talk to and whose provider is the gateway."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

import litellm

from tests.clients.programs import anthropic_python, openai_python
from tests.clients.programs.checking import Client, Place, add, headers_say, no_route, same, streamed, true
from tests.clients.programs.expected import QUESTION, SUM, UNKNOWN_ROUTE
from tests.clients.programs.tool import Answer

PREFIX = "llm_provider-"  # what LiteLLM puts before headers of its provider
START = 500.0  # seconds; the proxy imports a lot before it listens


class Chat(Client):
    """``litellm.completion`` with the provider ``openai``."""

    name, door = "LiteLLM", "chat"
    provider = "openai"

    def ask(self, **options: Any) -> Any:
        """The answer."""
        base = self.place.url if self.provider == "anthropic" else self.place.base_url
        route = options.pop("route", self.place.route)
        options = {"messages": [{"role": "user", "content": QUESTION}], **options}
        model = f"{self.provider}/{route}"
        return litellm.completion(model, api_base=base, api_key=self.place.key, num_retries=0, timeout=60.0, **options)

    def text(self) -> None:
        """The text, its end and the counts of tokens."""
        answer = self.ask()
        same(answer.choices[0].message.content, self.place.text)
        same(answer.choices[0].finish_reason, "stop")
        true(answer.usage.completion_tokens, "counts of tokens")

    def headers(self) -> None:
        """What was decided."""
        given = self.ask()._hidden_params["additional_headers"]
        headers_say({name.removeprefix(PREFIX): value for name, value in given.items()}, self.place.who)

    def stream(self) -> None:
        """Deltas that add up to the text."""
        streamed((chunk.choices[0].delta.content for chunk in self.ask(stream=True)), self.place)

    def tools_whole(self) -> None:
        """A call, and the answer to its result."""
        self._answered(self.ask(messages=[{"role": "user", "content": SUM}], tools=self._tools))

    def tools_streamed(self) -> None:
        """The same, where the call is put together from deltas."""
        asked = [{"role": "user", "content": SUM}]
        chunks = list(self.ask(messages=asked, tools=self._tools, stream=True))
        self._answered(litellm.stream_chunk_builder(chunks, messages=asked))

    _tools = ({"type": "function", "function": openai_python.ADD},)

    def _answered(self, answer: Any) -> None:
        wants = answer.choices[0].message
        (call,) = wants.tool_calls
        numbers = json.loads(call.function.arguments)
        same((call.function.name, numbers), ("add", self.place.numbers))
        result = {"role": "tool", "tool_call_id": call.id, "content": str(add(**numbers))}
        after = self.ask(messages=[{"role": "user", "content": SUM}, wants.model_dump(), result], tools=self._tools)
        same(after.choices[0].message.content, self.place.summed_up)

    def structured(self) -> None:
        """An object of the class that was asked for."""
        answer = self.ask(response_format=Answer)
        same(Answer.model_validate_json(answer.choices[0].message.content), Answer(**self.place.structured))

    def error(self) -> None:
        """The library's own exception."""
        with no_route(litellm.NotFoundError):
            self.ask(route=UNKNOWN_ROUTE)


class Responses(Chat):
    """``litellm.completion`` by the Responses API."""

    door = "responses"
    provider = "openai/responses"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        # Without this it does not ask for streams of models that it does not know, and cuts whole answers into pieces.
        litellm.register_model({place.route: {"litellm_provider": "openai", "supports_native_streaming": True}})


class Messages(Chat):
    """``litellm.completion`` with the provider ``anthropic``."""

    door = "messages"
    provider = "anthropic"


def _through_proxy(place: Place) -> Place:
    """The same route, but by way of the proxy, as soon as it listens."""
    end = time.monotonic() + START
    while True:
        try:
            with urllib.request.urlopen(f"{place.proxy}/health/liveliness", timeout=5.0):
                return place._replace(url=place.proxy)
        except (urllib.error.URLError, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _unprefixed(headers: Any) -> dict[str, str]:
    return {name.removeprefix(PREFIX): value for name, value in headers.items()}


class ProxiedChat(openai_python.Chat):
    """OpenAI's client by way of LiteLLM's proxy."""

    name = "LiteLLM proxy"
    error = None  # type: ignore[assignment]  # the proxy answers for a model that it does not know

    def __init__(self, place: Place) -> None:
        super().__init__(_through_proxy(place))

    def headers(self) -> None:
        """What was decided."""
        answer = self.ask.with_raw_response.create(model=self.place.route, messages=self.messages)
        headers_say(_unprefixed(answer.headers), self.place.who)


class ProxiedResponses(openai_python.Responses):
    """OpenAI's client by way of LiteLLM's proxy, with the Responses API on both sides."""

    name = "LiteLLM proxy"
    error = None  # type: ignore[assignment]

    def __init__(self, place: Place) -> None:
        super().__init__(_through_proxy(place))

    def headers(self) -> None:
        """What was decided."""
        answer = self.ask.with_raw_response.create(model=self.place.route, input=QUESTION)
        headers_say(_unprefixed(answer.headers), self.place.who)


class ProxiedMessages(anthropic_python.Messages):
    """Anthropic's client by way of LiteLLM's proxy, with the Messages API on both sides."""

    name = "LiteLLM proxy"
    error = headers = None  # type: ignore[assignment]  # by this API, the proxy does not pass headers on
    count_tokens = None  # type: ignore[assignment]  # the proxy counts by itself

    def __init__(self, place: Place) -> None:
        super().__init__(_through_proxy(place))
