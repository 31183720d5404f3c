"""The OpenAI Agents SDK: with its default, which is the Responses API, and with chat completions."""

from typing import Any

import openai
from agents import Agent, RunConfig, Runner, function_tool, set_default_openai_api, set_default_openai_client
from openai import AsyncOpenAI

from tests.clients.programs.checking import Client, Place, no_route, same, streamed, true
from tests.clients.programs.expected import QUESTION, SUM, UNKNOWN_ROUTE
from tests.clients.programs.tool import Answer, recording_add


class Responses(Client):
    """The SDK as it is by default."""

    name, door = "openai-agents", "responses"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        client = AsyncOpenAI(base_url=place.base_url, api_key=place.key, max_retries=0, timeout=60.0)
        set_default_openai_client(client, use_for_tracing=False)
        self.quiet = RunConfig(tracing_disabled=True)

    def agent(self, **options: Any) -> Any:
        """An agent that uses the route."""
        return Agent(name="clerk", instructions="Be brief.", **{"model": self.place.route, **options})

    async def text(self) -> None:
        """The text and the counts of tokens."""
        result = await Runner.run(self.agent(), QUESTION, run_config=self.quiet)
        same(result.final_output, self.place.text)
        true(result.context_wrapper.usage.output_tokens, "counts of tokens")

    async def stream(self) -> None:
        """Deltas that add up to the text."""
        result = Runner.run_streamed(self.agent(), QUESTION, run_config=self.quiet)
        deltas = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        streamed(deltas, self.place)
        same(result.final_output, self.place.text)

    async def tools_whole(self) -> None:
        """The agent calls the tool and gets the answer to its result."""
        add, calls = recording_add()
        result = await Runner.run(self.agent(tools=[function_tool(add)]), SUM, run_config=self.quiet)
        same((calls, result.final_output), ([self.place.numbers], self.place.summed_up))

    async def tools_streamed(self) -> None:
        """The same as a stream."""
        add, calls = recording_add()
        result = Runner.run_streamed(self.agent(tools=[function_tool(add)]), SUM, run_config=self.quiet)
        async for _ in result.stream_events():
            pass
        same((calls, result.final_output), ([self.place.numbers], self.place.summed_up))

    async def structured(self) -> None:
        """An object of the class that was asked for."""
        result = await Runner.run(self.agent(output_type=Answer), QUESTION, run_config=self.quiet)
        same(result.final_output, Answer(**self.place.structured))

    async def error(self) -> None:
        """The client's own exception."""
        with no_route(openai.NotFoundError):
            await Runner.run(self.agent(model=UNKNOWN_ROUTE), QUESTION, run_config=self.quiet)


class Chat(Responses):
    """The SDK with chat completions."""

    door = "chat"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        set_default_openai_api("chat_completions")
