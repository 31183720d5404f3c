"""Messages of the Messages API as chat completions.

Text, tool calls, thinking, refusals, the reason why the model stopped, and counts of tokens have a place in a chat
completion. Thinking is ``reasoning_content``, and with its signatures ``thinking_blocks``, which callers can send back.
Blocks of other types are kept in ``other_blocks`` of the message.
"""

from collections.abc import Mapping
from typing import Any

from bpac.answer import excerpt
from bpac.errors import AnswerError
from bpac.wire.json import from_json, to_json
from bpac.wire.translating import WRONG_KIND, Finish, chat_usage, error_body, reported

# Why a model stopped. Any other reason means that it might have gone on, for which the chat API has one word.
_FINISH: Mapping[Any, Finish] = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "refusal": "content_filter",
}  # fmt: skip
# Counts of the prompt: what was read anew, what was written to the cache, and what came from it.
_PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def read_reply(data: bytes, created: int) -> bytes:
    """The chat completion that a response is; ``AnswerError`` if it is no message.

    Parameters
    ----------
    data: what the server sent.
    created: the time, in seconds since 1970.
    """
    body = from_json(data)
    try:
        return to_json(_completion(body, created))
    except WRONG_KIND as error:
        raise AnswerError(f"not a message ({type(error).__name__}): {excerpt(body)}") from error


def _completion(body: Mapping[str, Any], created: int) -> dict[str, Any]:
    if body.get("type") == "error":
        raise reported(body.get("error"))
    message: dict[str, Any] = {"role": "assistant", "content": None}
    texts: list[str] = []
    thoughts: list[str] = []
    for block in body["content"]:
        kind = block["type"]
        if kind == "text":
            texts.append(block["text"])
        elif kind == "tool_use":
            message.setdefault("tool_calls", []).append(tool_call(block, to_json(block["input"]).decode()))
        elif kind in ("thinking", "redacted_thinking"):
            thoughts.append(block.get("thinking") or "")
            message.setdefault("thinking_blocks", []).append(block)
        else:
            message.setdefault("other_blocks", []).append(block)
    if texts or "tool_calls" not in message:
        message["content"] = "".join(texts)
    if any(thoughts):
        message["reasoning_content"] = "\n\n".join(filter(None, thoughts))
    if refusal := refusal_of(body):
        message["refusal"] = refusal
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": finish_reason(body),
        **stopped_by(body),
    }
    head = {"id": body.get("id") or "", "object": "chat.completion", "created": created, "model": body.get("model")}
    usage = read_usage(body.get("usage"))
    return {**head, "choices": [choice], **({"usage": usage} if usage else {})}


def tool_call(block: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    """A tool call of the chat API.

    Parameters
    ----------
    block: the block that names its id and its tool.
    arguments: the JSON text of its arguments.
    """
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}


def finish_reason(stopped: Mapping[str, Any]) -> Finish:
    """Why the model stopped, from the object that has its ``stop_reason``.

    >>> finish_reason({"stop_reason": "end_turn"}), finish_reason({"stop_reason": "pause_turn"})
    ('stop', 'length')
    """
    return _FINISH.get(stopped.get("stop_reason"), "length")


def stopped_by(stopped: Mapping[str, Any]) -> dict[str, str]:
    """The stop sequence at which the model stopped, in the field that vLLM has for it; nothing if there was none.

    >>> stopped_by({"stop_reason": "stop_sequence", "stop_sequence": "END"})
    {'stop_reason': 'END'}
    """
    found = stopped.get("stop_sequence")
    return {"stop_reason": found} if isinstance(found, str) else {}


def refusal_of(stopped: Mapping[str, Any]) -> str:
    """Why the model refused to answer; empty if it did not, or did not say why."""
    details = stopped.get("stop_details")
    text = details.get("explanation") if isinstance(details, Mapping) else None
    return text if isinstance(text, str) and stopped.get("stop_reason") == "refusal" else ""


def read_usage(usage: Any) -> dict[str, Any] | None:
    """The counts of tokens; none if the server did not count them.

    >>> read_usage({"input_tokens": 2, "cache_read_input_tokens": 8, "output_tokens": 5})["prompt_tokens"]
    10
    """
    if not isinstance(usage, Mapping):
        return None
    parts = [usage.get(name) for name in _PROMPT]
    # One that is not a count spoils the sum, which is then estimated.
    prompt = sum(part or 0 for part in parts) if all(_counts(part) for part in parts) else None
    details = usage.get("output_tokens_details")
    thought = details.get("thinking_tokens") if isinstance(details, Mapping) else None
    written = parts[1] if _counts(parts[1]) else None
    more = {"cache_creation_tokens": written} if written else {}
    return chat_usage(prompt if parts[0] is not None else None, parts[2], usage.get("output_tokens"), thought, **more)


def _counts(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)


def read_error(data: bytes) -> bytes:
    """The body of an error response as OpenAI's servers write it; other bodies stay as they are.

    >>> read_error(b'{"type": "error", "error": {"type": "invalid_request_error", "message": "top_k: unknown"}}')
    b'{"error":{"message":"top_k: unknown","type":"invalid_request_error","param":null,"code":null}}'
    """
    try:
        body = from_json(data)
        if body["type"] != "error":
            return data
        return error_body(str(body["error"]["message"]), str(body["error"]["type"]), None, None)
    except (AnswerError, *WRONG_KIND):
        return data
