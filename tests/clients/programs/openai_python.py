"""OpenAI's client for Python, by both of its APIs."""

import json
from typing import Any

import openai
from openai import OpenAI

from tests.clients.programs.checking import Client, Place, add, headers_say, no_route, same, streamed, true
from tests.clients.programs.expected import QUESTION, SUM, UNKNOWN_ROUTE
from tests.clients.programs.tool import Answer

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
ADD: dict[str, Any] = {"name": "add", "description": "Add two numbers.", "parameters": PARAMETERS, "strict": True}


class Chat(Client):
    """``client.chat.completions``."""

    name, door = "openai (Python)", "chat"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.client = OpenAI(base_url=place.base_url, api_key=place.key, max_retries=0, timeout=60.0)
        self.ask: Any = self.client.chat.completions
        self.messages: list[Any] = [{"role": "user", "content": QUESTION}]
        self.tools = [{"type": "function", "function": ADD}]

    def text(self) -> None:
        """The text, its end and the counts of tokens."""
        answer = self.ask.create(model=self.place.route, messages=self.messages)
        same(answer.choices[0].message.content, self.place.text)
        same(answer.choices[0].finish_reason, "stop")
        true(answer.usage.completion_tokens, "counts of tokens")

    def headers(self) -> None:
        """What was decided."""
        headers_say(
            self.ask.with_raw_response.create(model=self.place.route, messages=self.messages).headers, self.place.who
        )

    def stream(self) -> None:
        """Deltas that add up to the text, and the counts of tokens at their end."""
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(self.ask.create(model=self.place.route, messages=self.messages, **options))
        streamed((chunk.choices[0].delta.content for chunk in chunks if chunk.choices), self.place)
        true(chunks[-1].usage.completion_tokens, "counts of tokens")

    def tools_whole(self) -> None:
        """A call, and the answer to its result."""
        asked: list[Any] = [{"role": "user", "content": SUM}]
        wants = self.ask.create(model=self.place.route, messages=asked, tools=self.tools).choices[0].message
        self._answered(asked, wants)

    def tools_streamed(self) -> None:
        """The same, where the call is put together from deltas."""
        asked: list[Any] = [{"role": "user", "content": SUM}]
        with self.ask.stream(model=self.place.route, messages=asked, tools=self.tools) as stream:
            wants = stream.get_final_completion().choices[0].message
        self._answered(asked, wants)

    def _answered(self, asked: list[Any], wants: Any) -> None:
        (call,) = wants.tool_calls
        same((call.function.name, json.loads(call.function.arguments)), ("add", self.place.numbers))
        result = {"role": "tool", "tool_call_id": call.id, "content": str(add(**self.place.numbers))}
        told = [*asked, wants.to_dict(), result]
        after = self.ask.create(model=self.place.route, messages=told, tools=self.tools)
        same(after.choices[0].message.content, self.place.summed_up)

    def structured(self) -> None:
        """An object of the class that was asked for."""
        answer = self.ask.parse(model=self.place.route, messages=self.messages, response_format=Answer)
        same(answer.choices[0].message.parsed, Answer(**self.place.structured))

    def error(self) -> None:
        """The client's own exception."""
        with no_route(openai.NotFoundError):
            self.ask.create(model=UNKNOWN_ROUTE, messages=self.messages)


class Responses(Client):
    """``client.responses``."""

    name, door = "openai (Python)", "responses"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.client = OpenAI(base_url=place.base_url, api_key=place.key, max_retries=0, timeout=60.0)
        self.ask: Any = self.client.responses
        self.tools = [{"type": "function", **ADD}]

    def text(self) -> None:
        """The text and the counts of tokens."""
        answer = self.ask.create(model=self.place.route, input=QUESTION, instructions="Be brief.")
        same((answer.output_text, answer.status), (self.place.text, "completed"))
        true(answer.usage.output_tokens, "counts of tokens")

    def headers(self) -> None:
        """What was decided."""
        headers_say(self.ask.with_raw_response.create(model=self.place.route, input=QUESTION).headers, self.place.who)

    def stream(self) -> None:
        """Deltas that add up to the text, and the response at their end."""
        events = list(self.ask.create(model=self.place.route, input=QUESTION, stream=True))
        streamed((event.delta for event in events if event.type == "response.output_text.delta"), self.place)
        same((events[0].type, events[-1].type), ("response.created", "response.completed"))
        same(events[-1].response.output_text, self.place.text)
        true(events[-1].response.usage.output_tokens, "counts of tokens")

    def tools_whole(self) -> None:
        """A call, and the answer to its result."""
        asked: list[Any] = [{"role": "user", "content": SUM}]
        self._answered(asked, self.ask.create(model=self.place.route, input=asked, tools=self.tools))

    def tools_streamed(self) -> None:
        """The same, where the call is put together from deltas."""
        asked: list[Any] = [{"role": "user", "content": SUM}]
        with self.ask.stream(model=self.place.route, input=asked, tools=self.tools) as stream:
            answer = stream.get_final_response()
        self._answered(asked, answer)

    def _answered(self, asked: list[Any], answer: Any) -> None:
        (call,) = [item for item in answer.output if item.type == "function_call"]
        same((call.name, json.loads(call.arguments)), ("add", self.place.numbers))
        result = {"type": "function_call_output", "call_id": call.call_id, "output": str(add(**self.place.numbers))}
        after = self.ask.create(model=self.place.route, input=[*asked, *answer.output, result], tools=self.tools)
        same(after.output_text, self.place.summed_up)

    def structured(self) -> None:
        """An object of the class that was asked for."""
        answer = self.ask.parse(model=self.place.route, input=QUESTION, text_format=Answer)
        same(answer.output_parsed, Answer(**self.place.structured))

    def error(self) -> None:
        """The client's own exception."""
        with no_route(openai.NotFoundError):
            self.ask.create(model=UNKNOWN_ROUTE, input=QUESTION)
