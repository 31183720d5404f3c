"""What a request or reply of another API says beyond the chat completion that it is translated to.

1. Inside, all requests and replies are chat completions: scores, graders and journals read nothing else. What another
   API says beyond that is kept beside it, in fields with the name ``ORIGINAL``.
2. A request has it at its top: the API of its door, that API's own fields, and its headers. Messages, parts of their
   content and tools have what stands in their place there.
3. A model with the API of the door gets the originals where there are any, and the translation everywhere else: what
   the gateway changes in a request is changed there.
4. All other models get the translation only (``without_originals``), or nothing, if the request is worth nothing
   without its originals (``only_here``). Nothing named ``ORIGINAL`` is ever sent to a server.
5. The reply of a model with the API of the door comes with its original, which is what the door passes on.

Callers of the chat door cannot write originals themselves: the door refuses the name, and without the one at the top
all others are fields like any other.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bpac.errors import AnswerError, RequestError
from bpac.wire.json import from_json, to_json
from bpac.wire.translating import NotExpressible

ORIGINAL = "bpac_original"
_KEY = b'"' + ORIGINAL.encode() + b'":'

Part = dict[str, Any]


class Original:
    """Collects the originals of a request.

    Parameters
    ----------
    api: the API of the door: ``messages`` or ``responses``.

    Attributes
    ----------
    values: what the chat request has under ``ORIGINAL``.
    """

    def __init__(self, api: str) -> None:
        self.values: dict[str, Any] = {"api": api, "fields": {}}

    def keep(self, **fields: Any) -> None:
        """Keep fields of the request, except for those that are missing or say nothing."""
        self.values["fields"] |= {name: value for name, value in fields.items() if value not in (None, {}, [])}

    def only_here(self, error: RequestError) -> None:
        """Note that the request can be answered by a model with the API of the door only.

        Parameters
        ----------
        error: why no other can; the first one counts.
        """
        self.values.setdefault("only_here", {"message": str(error), "param": error.param, "code": error.code})


def original_of(chat: Mapping[str, Any], api: str) -> Mapping[str, Any] | None:
    """The originals of a request if its door has that API; otherwise none."""
    found: Mapping[str, Any] | None = chat.get(ORIGINAL)
    return found if found is not None and found["api"] == api else None


def in_own_words(chat: Mapping[str, Any], api: str) -> Mapping[str, Any]:
    """A chat request with the caller's own values of fields, if the model has the API of its door.

    Elsewhere they may stand for something else in the request, which such a model gets as it is.
    """
    found = original_of(chat, api)
    own = found.get("own_words") if found is not None else None
    if not own:
        return chat
    changed = {name: own.get(name, value) for name, value in chat.items()}
    return {name: value for name, value in changed.items() if value is not None or name not in own}


def for_api(chat: Mapping[str, Any], api: str) -> Mapping[str, Any]:
    """A chat request for a model with an API: without originals if its door had another one.

    ``NotExpressible`` if it is worth nothing without them.
    """
    found = chat.get(ORIGINAL)
    if found is None or found["api"] == api:
        return chat
    if (only := found.get("only_here")) is not None:
        only_by = f"only a model with api = {found['api']!r} can be asked this"
        raise NotExpressible(f"{only_by}: {only['message']}", only["param"])
    return without_originals(chat)


def without_originals(chat: Mapping[str, Any]) -> dict[str, Any]:
    """A chat request as the chat API has it.

    >>> without_originals({ORIGINAL: {}, "messages": [{"role": "user", "content": [
    ...     {"type": "text", "text": "6 · 7?", ORIGINAL: [{"type": "text", "text": "6 · 7?", "cache_control": {}}]}]}]})
    {'messages': [{'role': 'user', 'content': '6 · 7?'}]}
    """
    plain = _plain(chat)
    plain["messages"] = [_plain_message(message) for message in chat["messages"]]
    if isinstance(tools := chat.get("tools"), list):
        plain["tools"] = [_plain(tool) if isinstance(tool, Mapping) else tool for tool in tools]
    return plain


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: inner for name, inner in value.items() if name != ORIGINAL}


def _plain_message(message: Mapping[str, Any]) -> dict[str, Any]:
    plain = _plain(message)
    if isinstance(content := plain.get("content"), list):
        plain["content"] = short([_plain(part) for part in content])
    return plain


def short(parts: list[Part]) -> str | list[Part]:
    """The content of a message: a text by itself, which every server understands, or a list of parts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        text: str = parts[0]["text"]
        return text
    return parts


def with_reply(completion: bytes, reply: bytes) -> bytes:
    """A chat completion with the reply that it was read from.

    Parameters
    ----------
    completion: the completion, as ``to_json`` writes it.
    reply: what the server sent.
    """
    return _with_original(completion, b'{"reply":' + _strict(reply) + b"}")


def with_events(chunk: bytes, events: Iterable[bytes]) -> bytes:
    """A chunk of a chat completion with the events that it was read from, as ``with_reply``."""
    return _with_original(chunk, b'{"events":[' + b",".join(map(_strict, events)) + b"]}")


def _with_original(written: bytes, original: bytes) -> bytes:
    return b"%b,%b%b}" % (written[:-1], _KEY, original)


def _strict(data: bytes) -> bytes:
    """The data as JSON: servers send some that is not."""
    return to_json(from_json(data))


def check_no_original(data: bytes) -> bytes:
    """A reply of a server of chat completions; ``AnswerError`` if it has an original, which only translations have.

    The door would pass on what that says, and it might not be what was scored and graded.
    """
    if _KEY[:-1] in data or b"\\u" in data:  # a name may be written with escapes
        found = from_json(data)
        if isinstance(found, dict) and ORIGINAL in found:
            raise AnswerError(f"the answer has a field {ORIGINAL}, which is a name of the gateway's own")
    return data


def with_text_cut(original: Any, kept: str) -> Any:
    """The original of a reply whose text ends earlier; none if its text is another one.

    Parameters
    ----------
    original: what a chat completion has under ``ORIGINAL``.
    kept: the beginning of the text that is kept.
    """
    reply = original["reply"]
    left, content = kept, "content" in reply
    cut: list[Any] = []
    for item in reply["content" if content else "output"]:
        parts, changed = [item] if content else item.get("content") or (), []
        for part in parts:
            if part.get("type") in ("text", "output_text"):
                text = str(part.get("text") or "")[: len(left)]
                if not left.startswith(text):
                    return None
                left = left[len(text) :]
                part = {**part, "text": text} | ({"logprobs": []} if "logprobs" in part else {})  # noqa: PLW2901
            changed.append(part)
        cut += changed if content else [{**item, "content": changed} if changed else item]
    return None if left else {"reply": {**reply, "content" if content else "output": cut}}
