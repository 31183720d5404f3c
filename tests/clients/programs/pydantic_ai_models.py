"""Pydantic AI with OpenAI's two APIs and with Anthropic's."""

from typing import Any

from pydantic_ai import Agent, ModelHTTPError, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tests.clients.programs.checking import Client, no_route, same, streamed, true
from tests.clients.programs.expected import QUESTION, SUM, UNKNOWN_ROUTE
from tests.clients.programs.tool import Answer, recording_add


class Chat(Client):
    """``OpenAIChatModel``."""

    name, door = "Pydantic AI", "chat"

    def model(self, route: str) -> Any:
        """The model of a route."""
        return OpenAIChatModel(route, provider=OpenAIProvider(base_url=self.place.base_url, api_key=self.place.key))

    def agent(self, **options: Any) -> Any:
        """An agent that uses the route."""
        return Agent(self.model(options.pop("route", self.place.route)), instructions="Be brief.", **options)

    async def text(self) -> None:
        """The text and the counts of tokens."""
        result = await self.agent().run(QUESTION)
        same(result.output, self.place.text)
        true(result.usage.output_tokens, "counts of tokens")

    async def stream(self) -> None:
        """Deltas that add up to the text."""
        async with self.agent().run_stream(QUESTION) as result:
            deltas = [delta async for delta in result.stream_text(delta=True, debounce_by=None)]
        streamed(deltas, self.place)

    async def tools_whole(self) -> None:
        """The agent calls the tool and gets the answer to its result."""
        add, calls = recording_add()
        result = await self.agent(tools=[add]).run(SUM)
        same((calls, result.output), ([self.place.numbers], self.place.summed_up))

    async def tools_streamed(self) -> None:
        """The same as a stream."""
        add, calls = recording_add()
        async with self.agent(tools=[add]).run_stream(SUM) as result:
            output = await result.get_output()
        same((calls, output), ([self.place.numbers], self.place.summed_up))

    async def structured(self) -> None:
        """An object of the class that was asked for, as JSON and by the call of a tool."""
        for wanted in (NativeOutput(Answer), Answer):
            result = await self.agent(output_type=wanted).run(QUESTION)
            same(result.output, Answer(**self.place.structured))

    async def error(self) -> None:
        """The library's own exception."""
        with no_route(ModelHTTPError):
            await self.agent(route=UNKNOWN_ROUTE).run(QUESTION)


class Responses(Chat):
    """``OpenAIResponsesModel``."""

    door = "responses"

    def model(self, route: str) -> Any:
        """The model of a route."""
        return OpenAIResponsesModel(
            route, provider=OpenAIProvider(base_url=self.place.base_url, api_key=self.place.key)
        )


class Messages(Chat):
    """``AnthropicModel``."""

    door = "messages"

    def model(self, route: str) -> Any:
        """The model of a route."""
        return AnthropicModel(route, provider=AnthropicProvider(base_url=self.place.url, api_key=self.place.key))

    async def structured(self) -> None:
        """An object of the class that was asked for, by the call of a tool."""
        result = await self.agent(output_type=Answer).run(QUESTION)
        same(result.output, Answer(**self.place.structured))
