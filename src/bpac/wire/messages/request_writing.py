"""Chat requests as requests of the Messages API.

1. Each field of the chat API is translated. Fields that it does not know, such as ``thinking``, ``output_config`` or
   ``top_k``, are the API's own and stay as they are. So are those that a caller sent through the Messages door, unless
   the model's own settings say something else.
2. What the API has no field for is refused, unless its value is the default (``UNKNOWN``).
3. What says nothing about the answer is left out (``NOT_SENT``): where a server stores and caches requests.
"""

from collections.abc import Mapping
from typing import Any

from bpac.wire.messages.history_writing import API, continues_without_thinking, write_history
from bpac.wire.messages.tool_writing import write_tool_choice, write_tools
from bpac.wire.originals import ORIGINAL, for_api, original_of
from bpac.wire.translating import WRONG_KIND, NotExpressible, check_fields, check_stateless, not_expressible

# Fields that the API does not have, each with the value that asks for nothing.
UNKNOWN: Mapping[str, Any] = {
    "audio": None, "frequency_penalty": 0, "function_call": None, "functions": None, "logit_bias": {},
    "logprobs": False, "modalities": ["text"], "moderation": None, "n": 1, "prediction": None, "presence_penalty": 0,
    "seed": None, "top_logprobs": 0, "verbosity": "medium", "web_search_options": None,
}  # fmt: skip
NOT_SENT = (
    "metadata", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "store",
    "stream_options", "user",
)  # fmt: skip
_TRANSLATED = (
    "max_completion_tokens", "max_tokens", "messages", "parallel_tool_calls", "reasoning_effort", "response_format",
    "service_tier", "stop", "tool_choice", "tools", ORIGINAL,
)  # fmt: skip
_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}
# Less than the least effort of the API is its least.
_EFFORTS = {"minimal": "low"}


def write_request(chat: Mapping[str, Any], default_max_tokens: int, signer: str = "") -> dict[str, Any]:
    r"""A chat request as a request of the Messages API; ``NotExpressible`` if that cannot be done.

    Parameters
    ----------
    chat: the request.
    default_max_tokens: the limit on generated tokens if the request has none, because the API demands one. A budget for
        thinking is added to it.
    signer: the model, as marks in signatures name it (default: none, if there are no marks).

    >>> write_request({"model": "m", "messages": [{"role": "user", "content": "6 · 7?"}], "stop": "\n"}, 100)
    {'model': 'm', 'messages': [{'role': 'user', 'content': '6 · 7?'}], 'max_tokens': 100, 'stop_sequences': ['\n']}
    """
    check_fields(chat, UNKNOWN, API)
    check_stateless(chat, ("container",))
    chat = for_api(chat, "messages")
    original = original_of(chat, "messages")
    left_out = {*UNKNOWN, *NOT_SENT, *_TRANSLATED}
    own: dict[str, Any] = {} if original is None else _fields(original)
    own |= {name: value for name, value in chat.items() if name not in left_out and value is not None}
    try:
        return own | _written(chat, own, default_max_tokens, signer)
    except WRONG_KIND as error:
        raise NotExpressible(f"the request is not a chat request ({type(error).__name__})", "messages") from error


def _fields(original: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the caller sent; the caller's name is in the chat, unless the model's settings drop it there."""
    fields = dict(original["fields"])
    metadata = {name: value for name, value in fields.pop("metadata", {}).items() if name != "user_id"}
    return fields | ({"metadata": metadata} if metadata else {})


def _written(chat: Mapping[str, Any], own: Mapping[str, Any], default_max_tokens: int, signer: str) -> dict[str, Any]:
    originals = ORIGINAL in chat
    system, turns = write_history(chat["messages"], signer, originals)
    request: dict[str, Any] = {"messages": turns}
    if _has_budget(own) and continues_without_thinking(turns):
        request["thinking"] = {"type": "disabled"}
    if system:
        request["system"] = system
    limit = chat.get("max_completion_tokens") or chat.get("max_tokens")
    request["max_tokens"] = limit or default_max_tokens + _budget(own.get("thinking"))
    if stop := chat.get("stop"):
        request["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if tools := chat.get("tools"):
        request["tools"] = write_tools(tools, originals)
    choice = write_tool_choice(chat.get("tool_choice"), chat.get("parallel_tool_calls"), bool(tools))
    if choice is not None:
        request["tool_choice"] = choice
    if caller := _caller(chat):
        request["metadata"] = {**own.get("metadata", {}), "user_id": caller}
    if (tier := chat.get("service_tier")) is not None and "service_tier" not in own:
        if tier not in _TIERS:
            raise not_expressible("service_tier", API, "choose auto or default")
        request["service_tier"] = _TIERS[tier]
    return request | _effort_and_format(chat, own)


def _has_budget(own: Mapping[str, Any]) -> bool:
    thinking = own.get("thinking")
    return isinstance(thinking, Mapping) and thinking.get("type") == "enabled"


def _budget(thinking: Any) -> int:
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    return budget if isinstance(budget, int) and budget > 0 else 0


def _caller(chat: Mapping[str, Any]) -> Any:
    metadata = chat.get("metadata")
    own = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    return chat.get("safety_identifier") or chat.get("user") or own


def _effort_and_format(chat: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that follow from ``reasoning_effort`` and ``response_format``; those of the API itself go before."""
    config: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    effort = chat.get("reasoning_effort")
    if effort == "none":
        fields = {} if "thinking" in own else {"thinking": {"type": "disabled"}}
    elif effort is not None:
        config["effort"] = _EFFORTS.get(effort, effort)
    if (wanted := _format(chat.get("response_format"))) is not None:
        config["format"] = wanted
    if config:
        fields["output_config"] = config | (own.get("output_config") or {})
    return fields


def _format(given: Any) -> dict[str, Any] | None:
    if given is None or given["type"] == "text":
        return None
    if given["type"] == "json_schema":
        return {"type": "json_schema", "schema": given["json_schema"]["schema"]}
    raise not_expressible("response_format", API, "give a JSON schema (type json_schema)")
