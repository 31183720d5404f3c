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
        said = [[message.get("role"), _plain(message.get("content"))] for message in self.messages]
        return hashlib.blake2b(json.dumps(said, sort_keys=True, default=str).encode(), digest_size=16).digest()


def _plain(content: Any) -> Any:
    """The content of a message; a list that has only texts is the same as their sequence."""
    if isinstance(content, list) and all(isinstance(part, dict) and "text" in part for part in content):
        content = "".join(str(part["text"]) for part in content)
    return content.strip() if isinstance(content, str) else content
