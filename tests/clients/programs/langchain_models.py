"""LangChain's chat models for OpenAI's two APIs and for Anthropic's."""

from collections.abc import Iterable
from typing import Any

import anthropic
import openai
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.clients.programs.checking import Client, add, headers_say, no_route, same, streamed, true
from tests.clients.programs.expected import QUESTION, SUM, UNKNOWN_ROUTE
from tests.clients.programs.tool import Answer


class Chat(Client):
    """``ChatOpenAI`` as it is by default."""

    name, door = "LangChain ChatOpenAI", "chat"
    not_found: type[Exception] = openai.NotFoundError

    def model(self, **options: Any) -> Any:
        """The chat model."""
        options = {"model": self.place.route, "base_url": self.place.base_url, **options}
        return ChatOpenAI(api_key=SecretStr(self.place.key), max_retries=0, timeout=60.0, **options)

    def text(self) -> None:
        """The text and the counts of tokens."""
        answer = self.model().invoke(QUESTION)
        same(answer.text, self.place.text)
        true(answer.usage_metadata["output_tokens"], "counts of tokens")

    def stream(self) -> None:
        """Chunks that add up to the text and the counts of tokens."""
        chunks = list(self.model(stream_usage=True).stream(QUESTION))
        streamed((chunk.text for chunk in chunks), self.place)
        true(_joined(chunks).usage_metadata["output_tokens"], "counts of tokens")

    def tools_whole(self) -> None:
        """A call, and the answer to its result."""
        self._answered(lambda bound, asked: bound.invoke(asked))

    def tools_streamed(self) -> None:
        """The same, where the call is put together from chunks."""
        self._answered(lambda bound, asked: _joined(bound.stream(asked)))

    def _answered(self, ask: Any) -> None:
        bound = self.model().bind_tools([tool(add)])
        asked = [HumanMessage(SUM)]
        wants = ask(bound, asked)
        (call,) = wants.tool_calls
        same((call["name"], call["args"]), ("add", self.place.numbers))
        result = ToolMessage(str(add(**call["args"])), tool_call_id=call["id"])
        same(bound.invoke([*asked, wants, result]).text, self.place.summed_up)

    def structured(self) -> None:
        """An object of the class that was asked for."""
        got = self.model().with_structured_output(Answer).invoke(QUESTION)
        same(got, Answer(**self.place.structured))

    def headers(self) -> None:
        """What was decided."""
        answer = self.model(include_response_headers=True).invoke(QUESTION)
        headers_say(answer.response_metadata["headers"], self.place.who)

    def error(self) -> None:
        """The exception of the client below."""
        with no_route(self.not_found):
            self.model(model=UNKNOWN_ROUTE).invoke(QUESTION)


class Responses(Chat):
    """``ChatOpenAI`` with ``use_responses_api``."""

    door = "responses"

    def model(self, **options: Any) -> Any:
        """The chat model."""
        return super().model(use_responses_api=True, **options)


class Messages(Chat):
    """``ChatAnthropic``."""

    name, door = "LangChain ChatAnthropic", "messages"
    not_found = anthropic.NotFoundError
    headers = None  # type: ignore[assignment]  # it does not show them

    def model(self, **options: Any) -> Any:
        """The chat model."""
        options = {"model": self.place.route, **options}
        return ChatAnthropic(base_url=self.place.url, api_key=self.place.key, max_retries=0, timeout=60.0, **options)


def _joined(chunks: Iterable[Any]) -> Any:
    first, *more = chunks
    return sum(more, start=first)
