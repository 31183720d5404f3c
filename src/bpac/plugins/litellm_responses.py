"""Responses as LiteLLM has them: whole answers and parts of streams, read and written by their attributes."""

from typing import Any

from bpac.remote.decision import RemoteDecision

# A part of a stream, as LiteLLM wants it of custom providers.
Chunk = dict[str, Any]


def usage_of(response: Any) -> dict[str, int]:
    """The tokens of an answer."""
    usage = getattr(response, "usage", None)
    return {name: getattr(usage, name, 0) or 0 for name in ("prompt_tokens", "completion_tokens")}


def without_logprobs(response: Any, options: dict[str, Any]) -> Any:
    """The draft as its caller asked for it."""
    if not options.get("logprobs"):
        for choice in response.choices:
            if hasattr(choice, "logprobs"):
                choice.logprobs = None
    return response


def described(response: Any, decision: RemoteDecision, answered_by: str) -> Any:
    """The response with headers that say what was decided; LiteLLM shows them after ``llm_provider-``."""
    hidden = response._hidden_params
    headers = {"x-bpac-answered-by": answered_by, "x-bpac-decision": decision.id or f"none ({decision.reason})"}
    hidden["additional_headers"] = {**(hidden.get("additional_headers") or {}), **headers}
    return response


def chunk_of(text: str, finish_reason: str = "", usage: Any = None, tool: Any = None) -> Chunk:
    """A part of a stream, as LiteLLM wants it of custom providers."""
    return {
        "text": text,
        "is_finished": bool(finish_reason),
        "finish_reason": finish_reason,
        "usage": usage,
        "index": 0,
        "tool_use": tool,
    }


def chunks_of(response: Any) -> list[Chunk]:
    """A whole answer as a stream."""
    choice = response.choices[0]
    tools = [
        {**call.model_dump(), "index": index}
        for index, call in enumerate(getattr(choice.message, "tool_calls", None) or ())
    ]
    usage = {**usage_of(response), "total_tokens": sum(usage_of(response).values())}
    text = [chunk_of(choice.message.content)] if choice.message.content else []
    return [*text, *(chunk_of("", tool=tool) for tool in tools), chunk_of("", choice.finish_reason or "stop", usage)]


def chunks_of_part(part: Any) -> list[Chunk]:
    """A part of the expert's stream, passed on."""
    if not part.choices:
        return []
    choice = part.choices[0]
    tools = [call.model_dump() for call in getattr(choice.delta, "tool_calls", None) or ()]
    chunks = [chunk_of("", tool=tool) for tool in tools]
    if choice.delta.content or choice.finish_reason:
        chunks.append(chunk_of(choice.delta.content or "", choice.finish_reason or ""))
    return chunks
