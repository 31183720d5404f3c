"""Chat requests as requests of the Responses API.

1. Each field of the chat API is translated, or has the same name and meaning in both. Fields that it does not know,
   such as ``reasoning``, ``include`` or ``truncation``, are the API's own and stay as they are. So are those that a
   caller sent through the Responses door, unless the model's own settings say something else.
2. What the API has no field for is refused, unless its value is the default (``UNKNOWN``).
3. Nothing is stored on the server unless the request asks for it: the default of the chat API, not of this one. What
   is stored there cannot be referred to (``STORED``).
"""

from collections.abc import Mapping
from typing import Any

from bpac.wire.originals import ORIGINAL, for_api, original_of
from bpac.wire.responses.input_writing import API, write_input
from bpac.wire.responses.tool_writing import write_tool, write_tool_choice
from bpac.wire.translating import WRONG_KIND, NotExpressible, check_fields, check_stateless

# Fields that the API does not have, each with the value that asks for nothing.
UNKNOWN: Mapping[str, Any] = {
    "audio": None, "frequency_penalty": 0, "function_call": None, "functions": None, "logit_bias": {},
    "modalities": ["text"], "n": 1, "prediction": None, "presence_penalty": 0, "seed": None, "stop": [],
    "web_search_options": None,
}  # fmt: skip
_TRANSLATED = (
    "logprobs", "max_completion_tokens", "max_tokens", "messages", "reasoning_effort", "response_format",
    "stream_options", "tool_choice", "tools", "top_logprobs", "verbosity", ORIGINAL,
)  # fmt: skip
STORED = ("background", "conversation", "previous_response_id")
LOGPROBS = "message.output_text.logprobs"


def write_request(chat: Mapping[str, Any], signer: str = "") -> dict[str, Any]:
    """A chat request as a request of the Responses API; ``NotExpressible`` if that cannot be done.

    Parameters
    ----------
    chat: the request.
    signer: the model, as marks in signatures name it (default: none, if there are no marks).

    >>> write_request({"model": "m", "messages": [{"role": "user", "content": "6 · 7?"}], "max_tokens": 50})["input"]
    [{'type': 'message', 'role': 'user', 'content': '6 · 7?'}]
    """
    check_fields(chat, UNKNOWN, API)
    check_stateless(chat, STORED)
    chat = for_api(chat, "responses")
    original = original_of(chat, "responses")
    left_out = {*UNKNOWN, *_TRANSLATED}
    own: dict[str, Any] = {} if original is None else dict(original["fields"])
    own |= {name: value for name, value in chat.items() if name not in left_out and value is not None}
    try:
        written = _written(chat, own, signer)
        if not chat.get("stream"):
            own.pop("stream_options", None)
        return {"store": False, **own, **written}
    except WRONG_KIND as error:
        raise NotExpressible(f"the request is not a chat request ({type(error).__name__})", "messages") from error


def _written(chat: Mapping[str, Any], own: Mapping[str, Any], signer: str) -> dict[str, Any]:
    originals = ORIGINAL in chat
    request: dict[str, Any] = {"input": write_input(chat["messages"], signer, originals)}
    if limit := chat.get("max_completion_tokens") or chat.get("max_tokens"):
        request["max_output_tokens"] = limit
    if chat.get("logprobs"):
        request["include"] = [*(own.get("include") or ()), LOGPROBS]
        request["top_logprobs"] = chat.get("top_logprobs") or 0
    if tools := chat.get("tools"):
        request["tools"] = [write_tool(tool, originals) for tool in tools]
    if (choice := chat.get("tool_choice")) is not None:
        request["tool_choice"] = write_tool_choice(choice)
    if (effort := chat.get("reasoning_effort")) is not None:
        request["reasoning"] = {"effort": effort, **(own.get("reasoning") or {})}
    if text := _text(chat):
        request["text"] = {**text, **(own.get("text") or {})}
    options = chat.get("stream_options") or {}
    if "include_obfuscation" in options:  # counts of tokens come without being asked for
        request["stream_options"] = {"include_obfuscation": options["include_obfuscation"]}
    return request


def _text(chat: Mapping[str, Any]) -> dict[str, Any]:
    text: dict[str, Any] = {}
    if (given := chat.get("response_format")) is not None:
        schema = given.get("json_schema") if given["type"] == "json_schema" else None
        text["format"] = {"type": given["type"], **(schema or {})}
    if (verbosity := chat.get("verbosity")) is not None:
        text["verbosity"] = verbosity
    return text
