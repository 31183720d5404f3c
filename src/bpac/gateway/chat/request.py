"""Chat completion requests: what is read of them, which are refused, and what is sent to the models."""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from bpac.gateway.http.bad_request import BadRequest
from bpac.scores import Needs, with_suffix
from bpac.wire.json import from_strict_json, more_values_than
from bpac.wire.originals import ORIGINAL

if TYPE_CHECKING:
    from bpac.gateway.games.desk import Joined

# Whole numbers beyond the range of a float have at least so many digits.
_MANY_DIGITS, _ALL_ZERO = b"0" * 309, bytes.maketrans(b"123456789", b"000000000")


class ChatRequest(NamedTuple):
    """A request for a chat completion.

    (A named tuple rather than a frozen dataclass: one is made for every request, in a third of the time.)

    Parameters
    ----------
    body: the whole request, as the caller sent it.
    model: the route asked for.
    stream: whether the answer is streamed.
    include_usage: whether a stream ends with the counts of tokens.
    logprobs, top_logprobs: which log-probabilities the caller wants to see.
    unscorable: the field because of which no draft of it can be scored; empty if there is none.
    task: the name of its task, for scores that are learned; empty if there is none.
    session: the name of the conversation or episode that it belongs to; empty if there is none.
    joined: the claim of its session, if it begins an episode.
    caller: the owner of decisions on it, as ``Identity.owner`` names it; empty on an open gateway.
    known: filled with headers about the decision as soon as it is made, so that an error response has them, too; none
        if nobody asks for them.
    """

    body: Mapping[str, Any]
    model: str
    stream: bool = False
    include_usage: bool = False
    logprobs: bool = False
    top_logprobs: int = 0
    unscorable: str = ""
    caller: str = ""
    known: list[tuple[bytes, bytes]] | None = None
    task: str = ""
    session: str = ""
    joined: "Joined | None" = None

    @classmethod
    def parse(cls, data: bytes, max_depth: int = 64, max_values: int = 100_000, caller: str = "") -> "ChatRequest":
        """The request in the body of a POST, or ``BadRequest``.

        >>> ChatRequest.parse(b'{"model": "homework", "messages": [{"role": "user", "content": "6 * 7?"}]}').model
        'homework'
        """
        return cls.read(parse_object(data, max_depth, max_values), caller)

    @classmethod
    def read(cls, body: Mapping[str, Any], caller: str = "") -> "ChatRequest":
        """The request in a decoded body, or ``BadRequest``.

        Parameters
        ----------
        body: the body.
        caller: the owner of decisions on it (default: empty, as on an open gateway).
        """
        model = _typed(body, "model", str, "a text")
        if not model:
            raise BadRequest("model is missing: /v1/models lists the routes", param="model")
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
            raise BadRequest("messages must be a list of at least one message", param="messages")
        options = _typed(body, "stream_options", dict, "an object") or {}
        n = _whole(body, "n", 1, 1, 128)
        logprobs = bool(_typed(body, "logprobs", bool, "true or false"))
        # Servers differ in how many they allow, and refuse what is too many.
        top_logprobs = _whole(body, "top_logprobs", 0, 0)
        if top_logprobs and not logprobs:
            message = "top_logprobs require logprobs: set logprobs to true, or leave top_logprobs out"
            raise BadRequest(message, param="top_logprobs", code="invalid_value")
        modalities = body.get("modalities")
        several = "n" if n > 1 else ""
        return cls(
            body=body,
            model=model,
            stream=bool(_typed(body, "stream", bool, "true or false")),
            include_usage=bool(_typed(options, "include_usage", bool, "true or false")),
            logprobs=logprobs,
            top_logprobs=top_logprobs,
            unscorable=several or ("modalities" if modalities not in (None, ["text"]) else ""),
            caller=caller,
        )

    def is_known(self, *headers: tuple[bytes, bytes]) -> None:
        """Add headers that every response from now on has, errors included."""
        if self.known is not None:
            self.known.extend(headers)

    @property
    def effort(self) -> str | None:
        """The ``reasoning_effort`` that the caller wants; none if it is left out."""
        effort = self.body.get("reasoning_effort")
        return effort if isinstance(effort, str) else None

    def with_any_effort(self) -> "ChatRequest":
        """The same request without ``reasoning_effort``, which each model of the route then sets by itself."""
        return self._replace(body={key: value for key, value in self.body.items() if key != "reasoning_effort"})

    @property
    def note(self) -> dict[str, str]:
        """The note beside a decision in the journal: the caller it was made for, and the session that follows it."""
        note = {"caller": self.caller} if self.caller else {}
        return note if self.joined is None else {**note, "session": self.joined.key}

    @property
    def question(self) -> str:
        """The last message of the user, for judges."""
        for message in reversed(self.body["messages"]):
            if message.get("role") == "user":
                return content_text(message.get("content"))
        return content_text(self.body["messages"][-1].get("content"))

    def for_draft(self) -> "ChatRequest":
        """The same request without thinking that its caller asks for in the API of a door.

        Drafts think only if the configuration of their model says so.
        """
        original = self.body.get(ORIGINAL)
        thinking = None if original is None else original["fields"].get("thinking")
        if original is None or thinking is None or thinking.get("type") == "disabled":
            return self
        fields = {name: value for name, value in original["fields"].items() if name != "thinking"}
        return self._replace(body={**self.body, ORIGINAL: {**original, "fields": fields}})

    def draft_body(self, needs: Needs, stream: bool) -> dict[str, Any]:
        """The request to the draft's model: the caller's, with what the score needs."""
        body = self.for_draft().expert_body(stream)
        if needs.logprobs:
            body["logprobs"] = True
            if needs.top_logprobs > self.top_logprobs:
                body["top_logprobs"] = needs.top_logprobs
        if needs.suffix:
            body["messages"] = with_suffix(self.body["messages"], needs.suffix)
        return body

    def expert_body(self, stream: bool) -> dict[str, Any]:
        """The request to the expert's model: the caller's, whole or streamed."""
        body = {key: value for key, value in self.body.items() if key not in ("stream", "stream_options")}
        if stream:
            options = self.body.get("stream_options") or {}
            # The gateway needs the counts for its savings. They are not shown to a caller who did not ask for them.
            body |= {"stream": True, "stream_options": {**options, "include_usage": True}}
        return body


def parse_object(data: bytes, max_depth: int, max_values: int = 100_000) -> dict[str, Any]:
    """The JSON object in a body, or ``BadRequest``."""
    # Checked before it is decoded: a list of empty lists takes twenty times the memory of its text.
    if more_values_than(data, max_values):
        raise BadRequest(f"the body has more than {max_values} values", 413, code="too_many_values")
    try:
        body = from_strict_json(data)
        if _MANY_DIGITS in data.translate(_ALL_ZERO):  # perhaps within a string
            json.loads(data, parse_int=_check_range)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object", code="invalid_json")
    # Only a body with that many brackets can be too deep. Nearly all have fewer.
    if data.count(b"{") + data.count(b"[") > max_depth and too_deep(body, max_depth):
        raise BadRequest(f"the body nests deeper than {max_depth} levels", code="too_deep")
    return body


def _check_range(digits: str) -> None:
    if math.isinf(float(digits)):
        raise ValueError("a number in it is beyond the range of numbers")


def too_deep(value: Any, most: int) -> bool:
    """Whether a JSON value nests deeper than ``most`` levels.

    >>> too_deep([[1]], 1), too_deep([[1]], 2)
    (True, False)
    """
    level, depth = [value], 0
    while level := [part for part in level if isinstance(part, dict | list)]:
        depth += 1
        if depth > most:
            return True
        level = [part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer)]
    return False


def content_text(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(content_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _typed(body: Mapping[str, Any], key: str, kind: type, what: str) -> Any:
    value = body.get(key)
    if value is not None and type(value) is not kind:
        raise BadRequest(f"{key} must be {what}", param=key, code="invalid_type")
    return value


def _whole(body: Mapping[str, Any], key: str, default: int, least: int, most: int | None = None) -> int:
    value = body.get(key)
    if value is None:
        return default
    if type(value) is float and value.is_integer():  # to JSON 1.0 is a whole number
        value = int(value)
    if type(value) is not int or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise BadRequest(f"{key} must be a whole number {bounds}", param=key, code="invalid_value")
    return value
