"""Requests and replies that use what only one of the APIs has, as the vendors' own packages describe them."""

import json
from collections.abc import Iterator
from typing import Any

from bpac.wire.messages.original_writing import events as message_events
from bpac.wire.responses.original_writing import _exploded as response_events
from tests.gateway.doors.opened import PIXEL, SCHEMA

CACHED: Any = {"type": "ephemeral", "ttl": "1h"}
# Fields of the API that this version of the client has no names for.
MORE = {"temperature": 1.0, "top_k": 5}
BETAS = "interleaved-thinking-2025-05-14,context-management-2025-06-27"

# Everything in it that chat completions have no place for must reach a model with the same API.
MESSAGES_REQUEST: dict[str, Any] = {
    "max_tokens": 4000, "stop_sequences": ["END"], "cache_control": CACHED,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": CACHED}, {"type": "text", "text": "Be kind."}],
    "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"},
    "metadata": {"user_id": "anna"}, "service_tier": "auto",
    "tools": [
        {"name": "add", "description": "Adds.", "input_schema": SCHEMA, "cache_control": CACHED,
         "input_examples": [{"a": 1}]},
    ],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?", "cache_control": CACHED},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            {"type": "document", "title": "A book", "context": "old", "citations": {"enabled": False},
             "source": {"type": "text", "media_type": "text/plain", "data": "It was."}, "cache_control": CACHED},
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"},
            {"type": "text", "text": "I look."},
            {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
            {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}, "cache_control": CACHED},
            {"type": "tool_use", "id": "toolu_2", "name": "add", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "cache_control": CACHED, "content": [
                {"type": "text", "text": "no such thing"},
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            ]},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "3"},
            {"type": "text", "text": "So?", "cache_control": CACHED},
        ]},
    ],
}  # fmt: skip
# What no other API can express.
MESSAGES_ONLY: dict[str, Any] = {
    "max_tokens": 4000,
    "tools": [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "bash_20250124", "name": "bash"},
    ],
    "messages": [
        {"role": "user", "content": [
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"},
             "citations": {"enabled": True}},
            {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]},
        ]},
        {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "text", "text": "Found.", "citations": [
                {"type": "char_location", "cited_text": "f", "document_index": 0, "document_title": None,
                 "start_char_index": 0, "end_char_index": 1}]},
        ]},
        {"role": "user", "content": "Go on."},
    ],
}  # fmt: skip
MESSAGES_REPLY: dict[str, Any] = {
    "id": "msg_01", "type": "message", "role": "assistant", "model": "claude", "content": [
        {"type": "thinking", "thinking": "six times seven", "signature": "bmV3"},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
        {"type": "text", "text": "It is ", "citations": None},
        {"type": "text", "text": "42", "citations": [
            {"type": "char_location", "cited_text": "42", "document_index": 0, "document_title": "A book",
             "start_char_index": 0, "end_char_index": 2, "file_id": None}]},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "42"},
         "caller": {"type": "direct"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [], "caller": {"type": "direct"}},
        {"type": "text", "text": ", so ", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}, "caller": {"type": "direct"}},
    ],
    "stop_reason": "pause_turn", "stop_sequence": None, "stop_details": None,
    "usage": {
        "input_tokens": 5, "output_tokens": 9, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 2,
        "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2},
        "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0}, "service_tier": "standard",
        "output_tokens_details": {"thinking_tokens": 4},
    },
}  # fmt: skip

RESPONSES_REQUEST: dict[str, Any] = {
    "instructions": "Be brief.", "max_output_tokens": 400, "temperature": 1.0, "prompt_cache_key": "k",
    "prompt_cache_retention": "24h", "safety_identifier": "anna", "service_tier": "auto", "parallel_tool_calls": False,
    "max_tool_calls": 3, "metadata": {"team": "a"}, "truncation": "disabled", "store": False,
    "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "tools": [
        {"type": "function", "name": "add", "description": "Adds.", "parameters": SCHEMA, "strict": None},
        {"type": "function", "name": "sub", "parameters": None, "strict": False, "defer_loading": True},
        {"type": "custom", "name": "code", "format": {"type": "grammar", "syntax": "lark", "definition": "a"}},
    ],
    "tool_choice": {"type": "function", "name": "add"},
    "input": [
        {"type": "message", "role": "developer", "content": "Speak German."},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "low"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
        ]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
         "encrypted_content": "gAAAAhidden"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}]},
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}', "status": "completed"},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAAAmore"},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "code", "input": "a"},
        {"type": "function_call_output", "call_id": "call_1", "output": [
            {"type": "input_text", "text": "a plot:"},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}]},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "3"},
        {"type": "message", "role": "user", "content": "So?"},
    ],
}  # fmt: skip
RESPONSES_ONLY: dict[str, Any] = {
    "truncation": "auto", "tools": [{"type": "web_search_preview", "search_context_size": "low"}],
    "tool_choice": {"type": "web_search_preview"},
    "input": [
        {"type": "message", "role": "user", "content": [
            {"type": "input_file", "file_url": "https://example.org/a.pdf"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "message", "role": "user", "content": "So?"},
    ],
}  # fmt: skip
RESPONSES_REPLY: dict[str, Any] = {
    "id": "resp_01", "object": "response", "created_at": 5, "status": "completed", "model": "gpt", "error": None,
    "incomplete_details": None, "service_tier": "priority", "parallel_tool_calls": True, "tool_choice": "auto",
    "tools": [], "instructions": "the operator's own", "output": [
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAAnew", "summary": [
            {"type": "summary_text", "text": "six"}, {"type": "summary_text", "text": "times seven"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
         "content": [{"type": "output_text", "text": "It is", "annotations": [
             {"type": "url_citation", "url": "https://example.org", "title": "t", "start_index": 0, "end_index": 2}],
             "logprobs": []}]},
        {"type": "message", "id": "msg_2", "role": "assistant", "status": "completed", "phase": "final_answer",
         "content": [{"type": "output_text", "text": " 42", "annotations": [], "logprobs": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}',
         "status": "completed"},
    ],
    "usage": {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}, "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 15,
    },
}  # fmt: skip


def streamed_message(reply: dict[str, Any]) -> bytes:
    """The events of a message as a server sends them, with a few that say nothing."""
    found = [*message_events({"reply": reply}, {}), {"type": "message_stop"}]
    return _sent([found[0], {"type": "ping"}, *found[1:]])


def streamed_response(reply: dict[str, Any]) -> bytes:
    """The events of a response as a server sends them."""
    return _sent({**event, "sequence_number": number} for number, event in enumerate(response_events(reply)))


def _sent(events: Any) -> bytes:
    return b"".join(_event(event) for event in events)


def _event(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def names(value: Any) -> Iterator[str]:
    """All names of fields in a JSON value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner)
