"""What a chat completion says, piece by piece, for replies in the format of another API.

A whole completion is read as a stream of one chunk, so that both are written in the same way.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bpac.answer import cached_tokens, excerpt, token_count
from bpac.errors import AnswerError
from bpac.wire.json import to_json

# Types of parts of a content that hold reasoning.
_REASONING = ("thinking", "reasoning")
_HIGH_SURROGATES = ("\ud800", "\udbff")


class CallPart(NamedTuple):
    """A part of a tool call.

    Parameters
    ----------
    number: the number of the call in the answer, from 0.
    id, name: of the call, empty in most parts.
    arguments: what is added to its arguments, or to the input of a custom tool.
    custom: whether it calls a custom tool, whose input is any text.
    """

    number: int
    id: str
    name: str
    arguments: str
    custom: bool


class Delta(NamedTuple):
    """What one chunk adds to an answer.

    Parameters
    ----------
    text, reasoning, refusal: what is added to each; mostly empty.
    calls: what is added to tool calls.
    thinking_blocks: thinking as an Anthropic server wrote it, with signatures.
    reasoning_items: reasoning as a Responses server wrote it, with a part that only that server can read.
    annotations: citations in the text, each as one flat object.
    logprobs: log-probabilities of the tokens.
    finish_reason: why the answer ends; empty before its end.
    stop_sequence: the sequence that ended it; empty if it is not known.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[CallPart, ...] = ()
    thinking_blocks: tuple[Mapping[str, Any], ...] = ()
    reasoning_items: tuple[Mapping[str, Any], ...] = ()
    annotations: tuple[Mapping[str, Any], ...] = ()
    logprobs: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str = ""
    stop_sequence: str = ""


class Counts(NamedTuple):
    """Counts of tokens, as a server reported them.

    Parameters
    ----------
    prompt, completion: tokens of the prompt and of the answer.
    cached, written: tokens of the prompt that came from a cache, or were written to one.
    reasoning: tokens of the answer that are reasoning.
    """

    prompt: int
    completion: int
    cached: int
    written: int
    reasoning: int


class DeltaReader:
    """Reads the chunks of one answer; of several choices only the first."""

    def __init__(self) -> None:
        self._texts = {"text": PairedText(), "reasoning": PairedText(), "refusal": PairedText()}
        self._arguments: dict[int, PairedText] = {}
        self._ids: dict[int, str] = {}
        self._numbers: dict[Any, int] = {}

    def read(self, chunk: Mapping[str, Any]) -> Delta:
        """What a chunk, or a whole completion, adds; ``AnswerError`` if it is neither."""
        try:
            choices = [choice for choice in chunk.get("choices") or () if not choice.get("index")]
            deltas = [self._delta(choice) for choice in choices]
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            raise AnswerError(f"not a chunk of a chat completion ({error}): {excerpt(chunk)}") from error
        return deltas[0] if deltas else Delta()

    def _delta(self, choice: Mapping[str, Any]) -> Delta:
        whole = "message" in choice
        message = (choice["message"] if whole else choice.get("delta")) or {}
        text, reasoning = _contents(message.get("content"))
        reasoning += _text(message.get("reasoning_content") or message.get("reasoning"))
        stopped_by = choice.get("stop_reason", choice.get("matched_stop"))
        logprobs = choice.get("logprobs")
        return Delta(
            self._texts["text"].add(text),
            self._texts["reasoning"].add(reasoning),
            self._texts["refusal"].add(_text(message.get("refusal"))),
            tuple(self._call(at, call, whole) for at, call in enumerate(message.get("tool_calls") or ())),
            _objects(message.get("thinking_blocks")),
            _objects(message.get("reasoning_items")),
            tuple(_flat(one) for one in _objects(message.get("annotations"))),
            _objects(logprobs.get("content")) if isinstance(logprobs, Mapping) else (),
            _text(choice.get("finish_reason")),
            stopped_by if isinstance(stopped_by, str) else "",
        )

    def _call(self, at: int, call: Mapping[str, Any], whole: bool) -> CallPart:
        custom = isinstance(call.get("custom"), Mapping)
        called: Mapping[str, Any] = call["custom"] if custom else call.get("function") or {}
        given, index = _text(call.get("id")), call.get("index")
        number = self._number(at if index is None and whole else index, given)
        arguments = called.get("input" if custom else "arguments")
        if isinstance(arguments, Mapping):  # some servers decode them
            arguments = to_json(arguments).decode()
        added = self._arguments.setdefault(number, PairedText()).add(_text(arguments))
        return CallPart(number, given, _text(called.get("name")), added, custom)

    def _number(self, index: Any, given: str) -> int:
        """The number of a call. Some servers leave out the index, or send the same one for all calls of an answer."""
        if index is None and not given:
            return max(self._ids, default=0)
        number = self._numbers.get(index if index is not None else given)
        known = self._ids.get(number, "") if number is not None else ""
        if number is None or (given and known and given != known):
            number = len(self._ids)
            self._numbers[index if index is not None else given] = number
        self._ids[number] = self._ids.get(number) or given
        return number


def read_counts(chunk: Mapping[str, Any]) -> Counts | None:
    """The counts of tokens in a chunk or completion; none if it has none.

    >>> read_counts({"usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    Counts(prompt=7, completion=2, cached=0, written=0, reasoning=0)
    """
    usage = chunk.get("usage")
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = token_count(usage.get("prompt_tokens")) or 0, token_count(usage.get("completion_tokens")) or 0
    cached = cached_tokens(usage, prompt) or 0
    of_prompt, of_completion = (_object(usage.get(f"{name}_tokens_details")) for name in ("prompt", "completion"))
    written = token_count(of_prompt.get("cache_creation_tokens", of_prompt.get("cache_write_tokens"))) or 0
    reasoning = token_count(of_completion.get("reasoning_tokens")) or 0
    return Counts(prompt, completion, cached, min(written, prompt - cached), min(reasoning, completion))


class PairedText:
    r"""Puts characters together that servers which count in UTF-16 split between two chunks; a half alone is left out.

    >>> text = PairedText()
    >>> text.add("6 \ud83d"), text.add("\ude00")
    ('6 ', '😀')
    """

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        """The text with the half character before it; a half at its end waits for the other one."""
        if not text:
            return ""
        text, self._half = self._half + text, ""
        if _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            text, self._half = text[:-1], text[-1]
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text


def _contents(content: Any) -> tuple[str, str]:
    """The text and the reasoning in a content, which may be a list of parts."""
    if not isinstance(content, list):
        return _text(content), ""
    text, reasoning = [], []
    for part in content:
        kind = part.get("type")
        if kind in _REASONING:
            found = part.get(kind, part.get("text"))
            reasoning.append(_contents(found)[0])
        else:
            text.append(_text(part.get("text")))
    return "".join(text), "".join(reasoning)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{excerpt(value, 50)!r} is not a text")
    return value


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _flat(annotation: Mapping[str, Any]) -> Mapping[str, Any]:
    """An annotation without the object within it, which has the name of its type."""
    kind = annotation.get("type")
    return {"type": kind, **_object(annotation.get(str(kind)))}


def _objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    return tuple(one for one in value if isinstance(one, Mapping)) if isinstance(value, list) else ()
