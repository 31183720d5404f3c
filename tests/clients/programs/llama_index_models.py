"""LlamaIndex: its models for servers that are like OpenAI's, and those for OpenAI and Anthropic themselves."""

from typing import Any

import anthropic
import openai
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses

from tests.clients.programs.checking import Client, add, no_route, same, streamed
from tests.clients.programs.expected import QUESTION, SUM, UNKNOWN_ROUTE
from tests.clients.programs.tool import Answer


class Chat(Client):
    """``OpenAILike``."""

    name, door = "LlamaIndex OpenAILike", "chat"
    kind: Any = OpenAILike
    unknown = UNKNOWN_ROUTE
    not_found: type[Exception] = openai.NotFoundError

    def model(self, **options: Any) -> Any:
        """The model."""
        like = {"is_chat_model": True, "is_function_calling_model": True}
        options = {"model": self.place.route, "api_base": self.place.base_url, **like, **options}
        return self.kind(api_key=self.place.key, max_retries=0, timeout=60.0, **options)

    def text(self) -> None:
        """The text."""
        same(self.model().complete(QUESTION).text, self.place.text)

    def stream(self) -> None:
        """Deltas that add up to the text."""
        streamed((part.delta for part in self.model().stream_chat([ChatMessage(QUESTION)])), self.place)

    def tools_whole(self) -> None:
        """A call, and the answer to its result."""
        model, tool = self.model(), FunctionTool.from_defaults(add)
        self._answered(model, tool, model.chat_with_tools([tool], SUM))

    def tools_streamed(self) -> None:
        """The same, where the call is put together from deltas."""
        model, tool = self.model(), FunctionTool.from_defaults(add)
        self._answered(model, tool, list(model.stream_chat_with_tools([tool], SUM))[-1])

    def _answered(self, model: Any, tool: Any, wants: Any) -> None:
        (call,) = model.get_tool_calls_from_response(wants)
        same((call.tool_name, call.tool_kwargs), ("add", self.place.numbers))
        named = {"tool_call_id": call.tool_id, "name": "add"}
        result = ChatMessage(role="tool", content=str(add(**call.tool_kwargs)), additional_kwargs=named)
        after = model.chat_with_tools([tool], chat_history=[ChatMessage(SUM), wants.message, result])
        same(after.message.content, self.place.summed_up)

    def structured(self) -> None:
        """An object of the class that was asked for."""
        same(self.model().structured_predict(Answer, PromptTemplate(QUESTION)), Answer(**self.place.structured))

    def error(self) -> None:
        """The exception of the client below."""
        with no_route(self.not_found):
            self.model(model=self.unknown).complete(QUESTION)


class Responses(Chat):
    """``OpenAILikeResponses``."""

    name, door = "LlamaIndex OpenAILikeResponses", "responses"
    kind = OpenAILikeResponses


class KnownChat(Chat):
    """``OpenAI``, which takes no model whose name it does not know."""

    name = "LlamaIndex OpenAI"
    unknown = "gpt-4"

    def model(self, **options: Any) -> Any:
        """The model."""
        options = {"model": self.place.route, "api_base": self.place.base_url, **options}
        return OpenAI(api_key=self.place.key, max_retries=0, timeout=60.0, **options)


class KnownMessages(Chat):
    """``Anthropic``, which takes no model whose name it does not know."""

    name, door = "LlamaIndex Anthropic", "messages"
    unknown = "claude-3-haiku-20240307"
    not_found = anthropic.NotFoundError

    def model(self, **options: Any) -> Any:
        """The model."""
        options = {"model": self.place.route, "base_url": self.place.url, **options}
        return Anthropic(api_key=self.place.key, max_retries=0, timeout=60.0, **options)
