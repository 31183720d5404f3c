"""Instructor, which patches the clients of OpenAI and Anthropic to return objects."""

from typing import Any

import instructor
from anthropic import Anthropic
from openai import OpenAI

from tests.clients.programs.checking import Client, no_route, same
from tests.clients.programs.expected import QUESTION, UNKNOWN_ROUTE
from tests.clients.programs.tool import Answer

ASKED: list[Any] = [{"role": "user", "content": QUESTION}]


class Chat(Client):
    """Chat completions, in the modes that send tools, a schema, and a wish for JSON."""

    name, door = "Instructor", "chat"
    modes: tuple[Any, ...] = (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA, instructor.Mode.JSON)

    def client(self, mode: Any) -> Any:
        """The patched client."""
        return instructor.from_openai(
            OpenAI(base_url=self.place.base_url, api_key=self.place.key, max_retries=0, timeout=60.0), mode=mode
        )

    def asked(self, mode: Any, **options: Any) -> Any:
        """The object that is returned."""
        options = {"model": self.place.route, "messages": ASKED, "max_retries": 0, **options}
        return self.client(mode).create(response_model=Answer, **options)

    def structured(self) -> None:
        """An object of the class that was asked for, in each mode."""
        for mode in self.modes:
            same(self.asked(mode).model_dump(), self.place.structured)

    def stream(self) -> None:
        """Objects that fill up, the last of which is whole."""
        whole = list(
            self.client(self.modes[0]).create_partial(
                model=self.place.route, messages=ASKED, response_model=Answer, max_retries=0
            )
        )[-1]
        same(whole.model_dump(), self.place.structured)

    def error(self) -> None:
        """An exception that has the gateway's message."""
        with no_route(Exception):
            self.asked(self.modes[0], model=UNKNOWN_ROUTE)


class Responses(Chat):
    """The Responses API."""

    door = "responses"
    modes = (instructor.Mode.RESPONSES_TOOLS,)


class Messages(Chat):
    """Anthropic's client."""

    door = "messages"
    modes = (instructor.Mode.ANTHROPIC_TOOLS,)

    def client(self, mode: Any) -> Any:
        """The patched client."""
        client = Anthropic(base_url=self.place.url, api_key=self.place.key, max_retries=0, timeout=60.0)
        return instructor.from_anthropic(client, mode=mode, max_tokens=100)
