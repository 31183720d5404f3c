"""Anthropic's client for Python."""

from typing import Any

import anthropic
from anthropic import Anthropic

from tests.clients.programs.checking import Client, Place, add, headers_say, no_route, same, streamed, true
from tests.clients.programs.expected import QUESTION, SUM, UNKNOWN_ROUTE
from tests.clients.programs.tool import Answer

ADD: dict[str, Any] = {
    "name": "add",
    "description": "Add two numbers.",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
}


class Messages(Client):
    """``client.messages``."""

    name, door = "anthropic (Python)", "messages"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.messages: Any = Anthropic(base_url=place.url, api_key=place.key, max_retries=0, timeout=60.0).messages
        asked = [{"role": "user", "content": QUESTION}]
        self.asked: dict[str, Any] = {"model": place.route, "max_tokens": 100, "messages": asked}

    def text(self) -> None:
        """The text, its end and the counts of tokens."""
        answer = self.messages.create(**self.asked, system="Be brief.")
        same([block.text for block in answer.content], [self.place.text])
        same(answer.stop_reason, "end_turn")
        true(answer.usage.output_tokens, "counts of tokens")

    def headers(self) -> None:
        """What was decided."""
        headers_say(self.messages.with_raw_response.create(**self.asked).headers, self.place.who)

    def stream(self) -> None:
        """Deltas that add up to the text, and the message at their end."""
        with self.messages.stream(**self.asked) as stream:
            streamed(stream.text_stream, self.place)
            whole = stream.get_final_message()
        same(whole.stop_reason, "end_turn")
        true(whole.usage.output_tokens, "counts of tokens")

    def tools_whole(self) -> None:
        """A call, and the answer to its result."""
        asked = [{"role": "user", "content": SUM}]
        self._answered(asked, self.messages.create(**{**self.asked, "messages": asked}, tools=[ADD]))

    def tools_streamed(self) -> None:
        """The same, where the call is put together from deltas."""
        asked = [{"role": "user", "content": SUM}]
        with self.messages.stream(**{**self.asked, "messages": asked}, tools=[ADD]) as stream:
            wants = stream.get_final_message()
        self._answered(asked, wants)

    def _answered(self, asked: list[Any], wants: Any) -> None:
        same(wants.stop_reason, "tool_use")
        (call,) = [block for block in wants.content if block.type == "tool_use"]
        same((call.name, call.input), ("add", self.place.numbers))
        result = {"type": "tool_result", "tool_use_id": call.id, "content": str(add(**call.input))}
        told = [*asked, {"role": "assistant", "content": wants.content}, {"role": "user", "content": [result]}]
        after = self.messages.create(**{**self.asked, "messages": told}, tools=[ADD])
        same([block.text for block in after.content], [self.place.summed_up])

    def structured(self) -> None:
        """An object of the class that was asked for."""
        answer = self.messages.parse(**self.asked, output_format=Answer)
        same(answer.parsed_output, Answer(**self.place.structured))

    def error(self) -> None:
        """The client's own exception."""
        with no_route(anthropic.NotFoundError):
            self.messages.create(**{**self.asked, "model": UNKNOWN_ROUTE})

    def count_tokens(self) -> None:
        """A number of tokens before anything is sent."""
        asked = {key: value for key, value in self.asked.items() if key != "max_tokens"}
        true(self.messages.count_tokens(**asked).input_tokens, "a count of tokens")
