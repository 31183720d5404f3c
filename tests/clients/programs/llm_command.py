"""The command ``llm``, with models that are configured in its file of OpenAI-compatible models."""

import json
from typing import Any

import llm
import llm.cli
from click.testing import CliRunner

from tests.clients.programs.checking import Client, Place, same, true
from tests.clients.programs.expected import QUESTION, SUM, UNKNOWN_ROUTE

FUNCTION = """
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
"""


class Chat(Client):
    """The command, run in this process: starting it takes longer than an answer."""

    name, door = "llm", "chat"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        shared: dict[str, Any] = {"api_base": place.base_url, "supports_tools": True, "supports_schema": True}
        shared |= {"api_key_name": "bpac", "responses": self.door == "responses"}
        models = [{"model_id": name, "model_name": name, **shared} for name in (place.route, UNKNOWN_ROUTE)]
        path = llm.user_dir() / "extra-openai-models.yaml"
        path.write_text(json.dumps(models), encoding="utf-8")  # YAML includes JSON

    def command(self, *words: str, route: str = "") -> Any:
        """What the command printed, and how it ended."""
        options = ["-m", route or self.place.route, "--key", self.place.key, "--no-log"]
        return CliRunner().invoke(llm.cli.cli, ["prompt", *words, *options])

    def printed(self, *words: str) -> str:
        """What the command printed, without the end of the line."""
        ran = self.command(*words)
        true(ran.exit_code == 0, f"exit code 0 of {ran.output} {ran.exception!r}")
        return str(ran.stdout).strip()

    def text(self) -> None:
        """The text."""
        same(self.printed(QUESTION, "--no-stream"), self.place.text)

    def stream(self) -> None:
        """The text, printed as it comes; this is the command's default."""
        same(self.printed(QUESTION), self.place.text)

    def tools_whole(self) -> None:
        """The command runs the function and prints the answer to its result."""
        same(self.printed(SUM, "--functions", FUNCTION, "--no-stream"), self.place.summed_up)

    def tools_streamed(self) -> None:
        """The same as a stream."""
        debugged = self.command(SUM, "--functions", FUNCTION, "--tools-debug")
        same(debugged.stdout.strip(), self.place.summed_up)
        true(f"add({self.place.numbers})" in debugged.stderr, f"the call in {debugged.stderr}")

    def structured(self) -> None:
        """JSON by a schema."""
        same(json.loads(self.printed(QUESTION, "--schema", "answer int, by")), self.place.structured)

    def error(self) -> None:
        """The gateway's message and an exit code other than 0."""
        ran = self.command(QUESTION, route=UNKNOWN_ROUTE)
        true(ran.exit_code != 0 and "there is no route" in ran.output, f"the gateway's message in {ran.output}")


class Responses(Chat):
    """The same with ``responses: true``."""

    door = "responses"
