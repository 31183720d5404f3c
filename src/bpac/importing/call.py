"""A call of a model, as a log records it: who was asked what, and the answer."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Message

Record = Mapping[str, Any]


@dataclass(slots=True)
class LoggedCall:
    """A call of a model.

    Parameters
    ----------
    place: where it was read, for messages.
    models: the names of the model, the most exact first; empty if the log does not say.
    answer: the answer; none if there is none.
    problem: why it cannot be used, in a few words; empty if it can.
    trace: the id that all calls for one request share; empty if there is none.
    messages: the chat messages that it answers; empty if the log does not have them.
    role: ``draft`` or ``expert``, if the log says so.
    given: further values of the record by their name in the table: a score, a loss, a correct answer.
    source: the fields that further values are looked up in; none if they are those of the record.
    id: what the server or the log calls it; empty if it has no id.
    """

    place: str
    models: tuple[str, ...] = ()
    answer: Answer | None = None
    problem: str = ""
    trace: str = ""
    messages: tuple[Message, ...] = ()
    role: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    source: Record | None = None
    id: str = ""

    @property
    def model(self) -> str:
        """The most exact name of the model."""
        return self.models[0] if self.models else ""

    @property
    def is_prompt(self) -> bool:
        """Whether it is a prompt whose answer is in another record."""
        return self.answer is None and not self.problem and self.role != "both"

    @property
    def prompt_key(self) -> bytes:
        """Equal for calls with the same messages; empty if they are not known."""
        if not self.messages:
            return b""
        return _digest([_said(message) for message in self.messages])

    @property
    def identity(self) -> bytes:
        """Equal for records of the same call, which two logs may have; empty if the call has no id."""
        if not self.id or self.answer is None:
            return b""
        return _digest([self.id, self.model, self.role, self.answer.text, self.prompt_key.hex()])


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(json.dumps(value, sort_keys=True, default=str).encode(), digest_size=16).digest()


def _said(message: Message) -> list[Any]:
    """What a message of a chat, or an item of the Responses API, says: its text, calls and results, without ids."""
    calls = message.get("tool_calls")
    listed = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    called = [_called(call.get("function") or call.get("custom")) for call in listed]
    item = [_decoded(message.get(name)) for name in ("name", "arguments", "input", "output")]
    return [message.get("role"), _plain(message.get("content")), called, item]


def _called(made: Any) -> Any:
    return {name: _decoded(value) for name, value in made.items()} if isinstance(made, Mapping) else made


def _decoded(value: Any) -> Any:
    """Arguments of a tool call as JSON values: logs space them differently."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _plain(content: Any) -> Any:
    """The content of a message; a list that has only texts is the same as their sequence."""
    if isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content):
        content = "".join(str(part["text"]) for part in content)
    return content.strip() if isinstance(content, str) else content
