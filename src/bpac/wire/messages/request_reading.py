"""Requests of Anthropic's Messages API, as requests for a chat completion.

Fields that chat completions have under the same name, and fields that are not known, are passed on as they are. What
chat completions do not have is kept for models with this API (``wire/originals.py``).
docs/doors.md lists what is translated, left out and refused.
"""

from collections.abc import Mapping
from typing import Any

from bpac.wire.chat_messages import Conversation
from bpac.wire.messages.content_reading import read_answer, read_parts, read_user
from bpac.wire.messages.tool_reading import read_tool, read_tool_choice
from bpac.wire.originals import ORIGINAL, Original, short
from bpac.wire.request_fields import Fields, refuse_several_answers

# Fields that only this API has. For other models they are left out: they say nothing about the answer, or are refused
# by ``_check``.
_KEPT = (
    "cache_control",
    "context_management",
    "diagnostics",
    "inference_geo",
    "mcp_servers",
    "metadata",
    "service_tier",
    "speed",
    "thinking",
    "user_profile_id",
    "workspace_id",
)
# All fields that are not passed on under their own names.
_READ = frozenset({
    *_KEPT, "model", "messages", "system", "max_tokens", "stop_sequences", "tools", "tool_choice", "output_config",
    "output_format", "stream", "container", ORIGINAL,
})  # fmt: skip
# The effort that a budget of thinking tokens stands for: the first whose limit is not passed.
_BUDGETS = ((2_048, "low"), (8_192, "medium"))
# What is cleared from a conversation that gets long. A model that sees more than it must answers all the same.
_CLEARING = "clear_"


def read_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request for a chat completion; ``RequestError`` if it cannot be read or expressed.

    >>> read_request({"model": "homework", "max_tokens": 50, "messages": [{"role": "user", "content": "6 * 7?"}]})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'model': 'homework', 'messages': [{'role': 'user', 'content': '6 * 7?'}], 'max_tokens': 50,
     'bpac_original': {'api': 'messages', 'fields': {}}}
    """
    fields, original = Fields(body), Original("messages")
    _check(fields, original)
    original.keep(**{name: fields.get(name) for name in _KEPT})
    chat = {**_prompt(fields, original), **fields.others(_READ)}
    fields.needed("max_tokens")
    chat["max_tokens"] = fields.whole("max_tokens", 1)
    if stop := fields.texts("stop_sequences"):
        chat["stop"] = stop
    if (effort := _effort(fields, original)) is not None:
        chat["reasoning_effort"] = effort
    chat |= _format(fields)
    if (config := fields.object("output_config")) is not None:
        original.keep(output_config=config.others(frozenset({"effort", "format"})))
    if fields.text("service_tier") == "standard_only":  # the other value is the default
        chat["service_tier"] = "default"
    if (metadata := fields.object("metadata")) is not None:
        if (user := metadata.text("user_id")) is not None:
            chat["user"] = user
        if others := metadata.others(frozenset({"user_id"})):
            chat["metadata"] = others
    if fields.flag("stream"):
        chat |= {"stream": True, "stream_options": {"include_usage": True}}
    return {**chat, ORIGINAL: original.values}


def read_prompt(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a request has for the model to read, as for a chat completion, of a request to count its tokens."""
    fields, original = Fields(body), Original("messages")
    chat = _prompt(fields, original)
    _effort(fields, original)
    return chat | _format(fields)


def shows_thinking(body: Mapping[str, Any]) -> bool:
    """Whether the caller of a request asks to see the thinking of the model.

    >>> shows_thinking({"thinking": {"type": "adaptive"}}), shows_thinking({})
    (True, False)
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping):
        return False
    return thinking.get("type") != "disabled" and thinking.get("display") != "omitted"


def _check(fields: Fields, original: Original) -> None:
    """Refuse what no model may be asked, and note what only a model with this API can be asked."""
    refuse_several_answers(fields)
    if fields.get("container") is not None:
        raise fields.unsupported("container", "cannot be used: code runs in containers at Anthropic only")
    if fields.get("mcp_servers"):
        error = fields.unsupported("mcp_servers", "cannot be used: offer the tools of the servers as tools")
        original.only_here(error)
    if fields.get("inference_geo") is not None:
        original.only_here(fields.unsupported("inference_geo", "cannot be used: choose a route in that region"))
    if (management := fields.object("context_management")) is not None:
        for edit in management.objects("edits"):
            if not edit.needed_text("type").startswith(_CLEARING):
                original.only_here(edit.unsupported("type", "cannot be used: this gateway shortens no conversations"))


def _prompt(fields: Fields, original: Original) -> dict[str, Any]:
    """The model, the messages and the tools."""
    chat: dict[str, Any] = {"model": fields.needed_text("model"), "messages": _messages(fields, original)}
    if tools := [read_tool(tool, original) for tool in fields.objects("tools")]:
        chat["tools"] = tools
    return chat | read_tool_choice(fields, bool(tools))


def _messages(fields: Fields, original: Original) -> list[dict[str, Any]]:
    conversation = Conversation(original)
    if fields.get("system") not in (None, ""):
        _system(fields, "system", conversation)
    if not fields.needed("messages"):
        raise fields.wrong("messages", "must be a list of at least one message", "invalid_type")
    for message in fields.objects("messages"):
        message.needed("content")
        role = message.one_of("role", "user", "assistant", "system")
        if role == "user":
            read_user(message, conversation)
        elif role == "assistant":
            read_answer(message, conversation)
        else:
            _system(message, "content", conversation)
    conversation.end()
    return conversation.messages


def _system(fields: Fields, name: str, conversation: Conversation) -> None:
    if isinstance(given := fields.get(name), str):
        conversation.spoken("system", given)
        return
    parts = []
    for block in fields.objects(name):
        if block.needed_text("type") != "text":
            raise block.unsupported("type", "must be text: a system prompt has texts only")
        parts += read_parts(block, conversation)
    if parts:
        conversation.spoken("system", short(parts))


def _effort(fields: Fields, original: Original) -> str | None:
    """How much the model is to think, in one word; none if that is left to the model.

    A word that stands for ``thinking`` is for other models only.
    """
    config = fields.object("output_config")
    effort = None if config is None else config.text("effort")
    if (thinking := fields.object("thinking")) is None:
        return effort
    kind = thinking.one_of("type", "enabled", "disabled", "adaptive", "between_tools")
    budget = thinking.whole("budget_tokens", 1)
    original.values["own_words"] = {"reasoning_effort": effort}
    if kind == "disabled":
        return "none"
    if effort is None and budget is not None:
        return next((word for limit, word in _BUDGETS if budget <= limit), "high")
    return effort


def _format(fields: Fields) -> dict[str, Any]:
    """The format of the answer."""
    config = fields.object("output_config")
    wanted = None if config is None else config.object("format")
    if wanted is None and (wanted := fields.object("output_format")) is None:
        return {}
    wanted.one_of("type", "json_schema")
    schema = wanted.needed_object("schema").values
    described = {"name": "answer", "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": described}}
