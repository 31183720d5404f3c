"""Responses of the Responses API as chat completions.

Text with its log-probabilities, refusals, tool calls, reasoning, the reason why the model stopped, and counts of tokens
have a place in a chat completion. Reasoning is ``reasoning_content``; items that can be sent back, because they carry
their content encrypted, are also ``reasoning_items``. Items of other types are kept in ``other_items`` of the message.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bpac.answer import excerpt, token_count
from bpac.errors import AnswerError
from bpac.wire.json import from_json, to_json
from bpac.wire.translating import WRONG_KIND, Finish, chat_usage, reported


def read_reply(data: bytes, created: int) -> bytes:
    """The chat completion that a response is; ``AnswerError`` if it is none.

    Parameters
    ----------
    data: what the server sent.
    created: the time, in seconds since 1970, if the response does not have it.
    """
    body = from_json(data)
    try:
        if body.get("error"):
            raise reported(body["error"])
        message, logprobs = read_message(body["output"])
        finish = finish_reason(body, has_calls="tool_calls" in message)
        choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}
        usage = read_usage(body.get("usage"))
        completion = {**head(body, created), "object": "chat.completion", "choices": [choice]}
        return to_json({**completion, **({"usage": usage} if usage else {})})
    except WRONG_KIND as error:
        raise AnswerError(f"not a response ({type(error).__name__}): {excerpt(body)}") from error


def head(body: Mapping[str, Any], created: int) -> dict[str, Any]:
    """The fields of a chat completion that name it."""
    at = body.get("created_at")
    when = int(at) if isinstance(at, int | float) else created
    return {"id": body.get("id") or "", "created": when, "model": body.get("model")}


def read_message(output: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The message that the items of a response add up to, and its log-probabilities; none if there are none."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    tokens: list[Any] | None = None
    for item in output:
        kind = item["type"]
        if kind == "message":
            for part in item["content"]:
                if part["type"] == "refusal":
                    refusals.append(part["refusal"])
                    continue
                texts.append(part.get("text") or "")
                if part.get("logprobs"):
                    tokens = [*(tokens or ()), *map(read_token, part["logprobs"])]
        elif kind == "reasoning":
            thoughts += reasoning_texts(item)
            if item.get("encrypted_content"):
                message.setdefault("reasoning_items", []).append(item)
        elif kind in ("function_call", "custom_tool_call"):
            message.setdefault("tool_calls", []).append(tool_call(item))
        else:
            message.setdefault("other_items", []).append(item)
    if texts or not (refusals or "tool_calls" in message):
        message["content"] = "".join(texts)
    if refusals:
        message["refusal"] = "".join(refusals)
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    return message, None if tokens is None else {"content": tokens, "refusal": None}


def reasoning_texts(item: Mapping[str, Any]) -> list[str]:
    """The texts of a reasoning item: what the model thought if the server shows it, or else its summary."""
    shown = item.get("content") or item.get("summary") or ()
    return [part["text"] for part in shown]


def tool_call(item: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call of the chat API."""
    if item["type"] == "custom_tool_call":
        return {"id": item["call_id"], "type": "custom", "custom": {"name": item["name"], "input": item["input"]}}
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def read_token(token: Mapping[str, Any]) -> dict[str, Any]:
    """A token with its log-probabilities, as the chat API has it."""
    others = [
        {"token": other.get("token") or "", "logprob": other.get("logprob"), "bytes": other.get("bytes")}
        for other in token.get("top_logprobs") or ()
    ]
    given = {"token": token["token"], "logprob": token.get("logprob"), "bytes": token.get("bytes")}
    return {**given, "top_logprobs": others}


def finish_reason(body: Mapping[str, Any], has_calls: bool) -> Finish:
    """Why the model stopped; ``ReportedError`` or another ``AnswerError`` if it did not answer.

    Parameters
    ----------
    body: the response.
    has_calls: whether it has tool calls.
    """
    status = body.get("status", "completed")
    if status == "failed":
        raise reported(body.get("error"))
    if status == "completed":
        return "tool_calls" if has_calls else "stop"
    if status != "incomplete":
        raise AnswerError(f"the response is not complete: its status is {excerpt(status, 50)}")
    details = body.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return "content_filter" if reason == "content_filter" else "length"


def read_usage(usage: Any) -> dict[str, Any] | None:
    """The counts of tokens; none if the server did not count them.

    >>> read_usage({"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 8}})
    {'prompt_tokens': 10, 'completion_tokens': 5, 'total_tokens': 15, 'prompt_tokens_details': {'cached_tokens': 8}}
    """
    if not isinstance(usage, Mapping):
        return None
    read, generated = usage.get("input_tokens_details"), usage.get("output_tokens_details")
    cached = read.get("cached_tokens") if isinstance(read, Mapping) else None
    thought = generated.get("reasoning_tokens") if isinstance(generated, Mapping) else None
    written = token_count(read.get("cache_write_tokens")) if isinstance(read, Mapping) else None
    more = {"cache_write_tokens": written} if written else {}
    return chat_usage(usage.get("input_tokens"), cached, usage.get("output_tokens"), thought, **more)
