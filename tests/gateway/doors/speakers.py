"""The same conversation at every door, held by the official clients."""

import json
from typing import Any, NamedTuple

from tests.gateway.doors.opened import SCHEMA, Opened, Point

ASKED = "6 * 7?"
USER: Any = [{"role": "user", "content": ASKED}]
FUNCTION = {"name": "add", "description": "Adds.", "parameters": SCHEMA}


class Said(NamedTuple):
    """An answer, whichever door it came through.

    ``calls`` has the id, the name and the decoded arguments of each tool call; ``turn`` is what the client would send
    back as its turn of the conversation.
    """

    text: str
    calls: list[tuple[str, str, Any]]
    ended: str
    tokens: int
    turn: list[Any]


def _chat(door: Opened, route: str, history: list[Any], stream: bool, **more: Any) -> Said:
    create = door.openai.chat.completions.create
    if stream:
        return _streamed_chat(
            create(model=route, messages=history, stream=True, stream_options={"include_usage": True}, **more)
        )
    got = create(model=route, messages=history, **more)
    choice = got.choices[0]
    turn = choice.message.model_dump(exclude_none=True)
    return _chat_said(turn, choice.finish_reason, got.usage.total_tokens)


def _streamed_chat(chunks: Any) -> Said:
    """The client's own way to put chunks together raises an error for answers that are cut off."""
    texts, calls, ended, tokens = [], dict[int, Any](), "", 0
    for chunk in chunks:
        tokens = chunk.usage.total_tokens if chunk.usage else tokens
        for choice in chunk.choices:
            texts.append(choice.delta.content or "")
            ended = choice.finish_reason or ended
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(part.index, {"type": "function", "function": {"name": "", "arguments": ""}})
                call |= {"id": part.id} if part.id else {}
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    turn = {"role": "assistant", "content": "".join(texts)}
    return _chat_said(turn | ({"tool_calls": list(calls.values())} if calls else {}), ended, tokens)


def _chat_said(turn: dict[str, Any], ended: str, tokens: int) -> Said:
    made = [(call["id"], call["function"]) for call in turn.get("tool_calls", ())]
    calls = [(call_id, function["name"], json.loads(function["arguments"])) for call_id, function in made]
    return Said(turn.get("content") or "", calls, ended, tokens, [turn])


def _responses(door: Opened, route: str, history: list[Any], stream: bool, **more: Any) -> Said:
    got = door.openai.responses.create(model=route, input=history, stream=stream, **more)
    if stream:
        got = list(got)[-1].response
    called = [item for item in got.output if item.type == "function_call"]
    calls = [(item.call_id, item.name, json.loads(item.arguments)) for item in called]
    turn = [item.to_dict() for item in got.output]
    details = got.incomplete_details
    return Said(got.output_text, calls, details.reason if details else got.status, got.usage.total_tokens, turn)


def _messages(door: Opened, route: str, history: list[Any], stream: bool, **more: Any) -> Said:
    if stream:
        with door.anthropic.messages.stream(model=route, max_tokens=100, messages=history, **more) as events:
            got = events.get_final_message()
    else:
        got = door.anthropic.messages.create(model=route, max_tokens=100, messages=history, **more)
    calls = [(block.id, block.name, block.input) for block in got.content if block.type == "tool_use"]
    text = "".join(block.text for block in got.content if block.type == "text")
    usage = got.usage
    tokens = usage.input_tokens + (usage.cache_read_input_tokens or 0) + usage.output_tokens
    turn = {"role": "assistant", "content": [block.to_dict() for block in got.content]}
    return Said(text, calls, got.stop_reason, tokens, [turn])


_ASK: Any = {"chat": _chat, "responses": _responses, "messages": _messages}
_TOOLS: Any = {
    "chat": [{"type": "function", "function": FUNCTION}],
    "responses": [{"type": "function", **FUNCTION, "strict": False}],
    "messages": [{"name": "add", "description": "Adds.", "input_schema": SCHEMA}],
}
DOORS = tuple(_ASK)


def ask(door: Opened, at: str, route: str, history: Any = USER, *, stream: bool = False, **more: Any) -> Said:
    """Ask at a door."""
    answer: Said = _ASK[at](door, route, history, stream, **more)
    return answer


def ask_with_tools(door: Opened, at: str, route: str, history: Any = USER, *, stream: bool = False) -> Said:
    """Ask at a door and offer a tool."""
    return ask(door, at, route, history, stream=stream, tools=_TOOLS[at])


def result(at: str, call_id: str, text: str) -> dict[str, Any]:
    """The result of a tool call, as a client of the door sends it."""
    if at == "chat":
        return {"role": "tool", "tool_call_id": call_id, "content": text}
    if at == "responses":
        return {"type": "function_call_output", "call_id": call_id, "output": text}
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]}


def parsed(door: Opened, at: str, route: str) -> Any:
    """A structured answer, parsed by the client."""
    if at == "chat":
        found = door.openai.chat.completions.parse(model=route, messages=USER, response_format=Point)
        return found.choices[0].message.parsed
    if at == "responses":
        return door.openai.responses.parse(model=route, input=ASKED, text_format=Point).output_parsed
    found = door.anthropic.messages.parse(model=route, max_tokens=100, messages=USER, output_format=Point)
    return found.parsed_output
