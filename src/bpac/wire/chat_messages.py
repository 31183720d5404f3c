"""Chat messages in the making, from requests that write conversations in another way.

1. What a model said is one message in a chat: its reasoning, its text and its tool calls. Other APIs list these as
   items or blocks, which are put together here until somebody else speaks.
2. Results of tools are messages with texts only. Images in them follow in a message of the user, after all results.
3. The reasoning of earlier answers is kept as ``reasoning_content``. What only its own server can read, such as
   signatures and encrypted reasoning, is kept as that server wrote it: in ``thinking_blocks`` (Messages) and
   ``reasoning_items`` (Responses).
4. What the other API says beyond this is kept under ``ORIGINAL`` (``wire/originals.py``): in an answer and in the
   result of a tool the list of what it was read from; in any other message the fields that it has there; in a part of a
   content the list of what stands in its place, empty for a part that is in the original of another one.
"""

from typing import Any

from bpac.errors import RequestError
from bpac.wire.originals import ORIGINAL, Original, Part, short


class Conversation:
    """Collects the messages of a chat.

    Parameters
    ----------
    original: the originals of the request.

    Attributes
    ----------
    messages: the messages so far; ``end`` completes them.
    """

    def __init__(self, original: Original) -> None:
        self._original = original
        self.messages: list[dict[str, Any]] = []
        self._said: dict[str, Any] | None = None
        self._images: list[Part] = []

    def spoken(self, role: str, content: str | list[Part], original: Part | None = None) -> None:
        """Add a message of the user or the system; ``original`` are the fields that only the caller's API has."""
        self.end()
        self.messages.append({"role": role, "content": content, **({ORIGINAL: original} if original else {})})

    def only_here(self, error: RequestError) -> None:
        """Note something that no chat can express, as ``Original.only_here``."""
        self._original.only_here(error)

    def kept(self, *originals: Part) -> None:
        """Add to the original of the answer."""
        self._answer().setdefault(ORIGINAL, []).extend(originals)

    def said(self, text: str, refusal: str = "") -> None:
        """Add a text of the model, or a text in which it refuses."""
        message = self._answer()
        for name, added in (("content", text), ("refusal", refusal)):
            if added or (name == "content" and not refusal):
                message[name] = f"{message[name]}\n\n{added}" if message.get(name) else added

    def called(self, call: dict[str, Any]) -> None:
        """Add a tool call of the model."""
        self._answer().setdefault("tool_calls", []).append(call)

    def thought(self, text: str, field: str = "", kept: Part | None = None) -> None:
        """Add reasoning of the model.

        Parameters
        ----------
        text: the reasoning; empty if it cannot be read.
        field: the field of the message in which the original is kept (default: it is not kept).
        kept: the original.
        """
        message = self._answer()
        if text:
            before = message.get("reasoning_content")
            message["reasoning_content"] = f"{before}\n\n{text}" if before else text
        if kept is not None:
            message.setdefault(field, []).append(kept)

    def result(self, call_id: str, parts: list[Part], original: Part) -> None:
        """Add the result of a tool call, as parts of a message's content, and as the caller's API has it."""
        self._end_answer()
        texts = [part for part in parts if part["type"] == "text"]
        others = [part for part in parts if part["type"] != "text"]
        result = {"role": "tool", "tool_call_id": call_id, "content": short(texts)}
        self.messages.append({**result, ORIGINAL: [original]})
        if others:
            before = text_part(f"From the result of the tool call {call_id}:")
            self._images += [{**part, ORIGINAL: []} for part in (before, *others)]

    def end(self) -> None:
        """Complete the messages so far."""
        self._end_answer()
        if self._images:
            self.messages.append({"role": "user", "content": self._images})
            self._images = []

    def _answer(self) -> dict[str, Any]:
        if self._said is None:
            self.end()
            self._said = {"role": "assistant", "content": None}
        return self._said

    def _end_answer(self) -> None:
        if self._said is not None:
            if self._said["content"] is None and not self._said.keys() & {"tool_calls", "refusal"}:
                self._said["content"] = ""  # only reasoning: servers need a text or a tool call
            self.messages.append(self._said)
            self._said = None


def text_part(text: str) -> Part:
    """A part with a text."""
    return {"type": "text", "text": text}


def function_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A call of a function."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
