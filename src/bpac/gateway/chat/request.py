"""Chat completion requests: what of them is read, what of them is refused, and what is asked upstream."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from bpac.gateway.http.bad_request import BadRequest
from bpac.scores import Needs, with_suffix
from bpac.wire.json_values import more_values_than

# Whole numbers beyond 64 bits have at least so many digits.
_MANY_DIGITS, _ALL_ZERO = b"0" * 19, bytes.maketrans(b"123456789", b"000000000")


class ChatRequest(msgspec.Struct, frozen=True, gc=False):
    """A request for a chat completion.

    Parameters
    ----------
    body: all of it, as the caller sent it.
    model: the route asked for.
    stream: whether the answer is wanted in pieces.
    include_usage: whether a stream shall end with the counts of tokens.
    logprobs, top_logprobs: what the caller wants to see of the log-probabilities.
    unscorable: the field because of which no draft of it can be scored; empty if there is none.
    caller: for whom decisions on it are made, as ``Identity.owner`` says; empty on an open gateway.
    """

    body: Mapping[str, Any]
    model: str
    stream: bool = False
    include_usage: bool = False
    logprobs: bool = False
    top_logprobs: int = 0
    unscorable: str = ""
    caller: str = ""

    @classmethod
    def parse(cls, data: bytes, max_depth: int = 64, max_values: int = 100_000, caller: str = "") -> "ChatRequest":
        """The request in the body of a POST, or ``BadRequest``.

        >>> ChatRequest.parse(b'{"model": "homework", "messages": [{"role": "user", "content": "6 * 7?"}]}').model
        'homework'
        """
        body = parse_object(data, max_depth, max_values)
        model = _typed(body, "model", str, "a text")
        if not model:
            raise BadRequest("model is missing: ask /v1/models what there is", param="model")
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
            raise BadRequest("messages must be a list of at least one message", param="messages")
        options = _typed(body, "stream_options", dict, "an object") or {}
        n = _whole(body, "n", 1, 1, 128)
        logprobs = bool(_typed(body, "logprobs", bool, "true or false"))
        # How many are too many is the servers' to say: they differ in it.
        top_logprobs = _whole(body, "top_logprobs", 0, 0)
        if top_logprobs and not logprobs:
            message = "top_logprobs are seen with logprobs only: set logprobs to true, or leave top_logprobs out"
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

    @property
    def note(self) -> dict[str, str]:
        """What the journal has beside a decision on it: for whom it was made."""
        return {"caller": self.caller} if self.caller else {}

    @property
    def question(self) -> str:
        """What was asked last, for judges."""
        for message in reversed(self.body["messages"]):
            if message.get("role") == "user":
                return content_text(message.get("content"))
        return content_text(self.body["messages"][-1].get("content"))

    def draft_body(self, needs: Needs, stream: bool) -> dict[str, Any]:
        """What is asked of the draft's model: the same, and what its score needs."""
        body = self.expert_body(stream)
        if needs.logprobs:
            body["logprobs"] = True
            if needs.top_logprobs > self.top_logprobs:
                body["top_logprobs"] = needs.top_logprobs
        if needs.suffix:
            body["messages"] = with_suffix(self.body["messages"], needs.suffix)
        return body

    def expert_body(self, stream: bool) -> dict[str, Any]:
        """What is asked of the expert's model: the same."""
        body = {key: value for key, value in self.body.items() if key not in ("stream", "stream_options")}
        if stream:
            options = self.body.get("stream_options") or {}
            # Counts are wanted for the accounts; a caller who did not ask for them does not see them.
            body |= {"stream": True, "stream_options": {**options, "include_usage": True}}
        return body


def parse_object(data: bytes, max_depth: int, max_values: int = 100_000) -> dict[str, Any]:
    """The JSON object in a body, or ``BadRequest``."""
    # Before anything is made of it: a list of empty lists takes twenty times the memory of its text.
    if more_values_than(data, max_values):
        raise BadRequest(f"the body has more than {max_values} values", 413, code="too_many_values")
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}", code="invalid_json") from None
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object", code="invalid_json")
    # Only a body with that many brackets can be too deep; nearly all are shallow, and are not looked at.
    if data.count(b"{") + data.count(b"[") > max_depth and too_deep(body, max_depth):
        raise BadRequest(f"the body nests deeper than {max_depth} levels", code="too_deep")
    if _MANY_DIGITS not in data.translate(_ALL_ZERO):
        return body
    # What orjson has found to be JSON is read again, and slowly, where it may have rounded a number.
    try:
        exact: dict[str, Any] = json.loads(data)
    except ValueError as error:
        raise BadRequest(f"a number in the body is too long: {error}", code="invalid_json") from None
    return exact


def too_deep(value: Any, most: int) -> bool:
    """Whether a JSON value nests deeper than so many levels.

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
    """The text of a message's content, which may come in parts."""
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
