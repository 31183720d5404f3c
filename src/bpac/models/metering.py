"""Counting what model servers bill: every attempt that a server answered, whether its answer could be used or not.

1. An attempt that the server answers with an error status is not billed. Every other attempt is, also one that was cut
   off, cancelled, or given up after a time limit. One that is cancelled on its way may never reach the server; it is
   counted, too, because that cannot be known.
2. Where the server counts tokens (``usage``), its count is taken.
3. Otherwise tokens are estimated from above and marked as estimates: the prompt by the largest number of tokens per
   byte that prompts of this model had so far, the answer by the tokens or the events of the stream that arrived, or by
   the longest answer so far if it was no stream. Before the first count every byte is a token.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from bpac.answer import Answer, cached_tokens, token_count
from bpac.models.connections import UNSENT
from bpac.wire.json import to_json
from bpac.wire.originals import ORIGINAL, without_originals
from bpac.wire.stream import StreamEvent
from bpac.wire.usage import Meter, Usage


def prompt_size(body: Mapping[str, Any]) -> int:
    """The bytes of what a request has for the model to read: two requests that differ in settings only are equal."""
    if ORIGINAL in body:  # the same is in it twice
        body = without_originals(body)
    return len(to_json([body.get("messages"), body.get("tools")]))


class TokenRates:
    """The largest numbers of tokens per byte of a prompt and per stream event that a model has shown.

    Attributes
    ----------
    longest: tokens of its longest answer.

    >>> rates = TokenRates()
    >>> rates.prompt(40)
    40
    >>> rates.learn(Usage(prompt=10, completion=3), request=40, events=2)
    >>> rates.prompt(40), rates.prompt(50), rates.completion(events=4, text=12), rates.longest
    (10, 13, 6, 3)
    """

    __slots__ = ("_completion", "_prompt", "longest")

    def __init__(self) -> None:
        # Tokens and bytes, as whole numbers: the same request is estimated with exactly the tokens it had.
        self._prompt: tuple[int, int] | None = None
        self._completion: tuple[int, int] | None = None
        self.longest = 0

    def learn(self, usage: Usage, request: int, events: int = 0) -> None:
        """Learn from an answer whose tokens the server counted.

        Parameters
        ----------
        usage: the tokens.
        request: the size of the prompt in bytes.
        events: events of the stream that brought a part of the answer (default: 0, for a whole answer).
        """
        self._prompt = _larger(self._prompt, (usage.prompt, request))
        self._completion = _larger(self._completion, (usage.completion, events))
        self.longest = max(self.longest, usage.completion)

    def prompt(self, request: int) -> int:
        """The tokens of a prompt of so many bytes, estimated from above."""
        return _scaled(self._prompt, request)

    def completion(self, events: int, text: int) -> int:
        """The tokens of a part of an answer, estimated from above.

        Parameters
        ----------
        events: events that brought it.
        text: its size in bytes, which counts before the first stream is complete.
        """
        return text if self._completion is None else _scaled(self._completion, events)


def _larger(rate: tuple[int, int] | None, seen: tuple[int, int]) -> tuple[int, int] | None:
    if not seen[1] or (rate is not None and seen[0] * rate[1] <= rate[0] * seen[1]):
        return rate
    return seen


def _scaled(rate: tuple[int, int] | None, size: int) -> int:
    tokens, bytes_ = rate or (1, 1)
    return -(-tokens * size // bytes_)


class Attempt:
    """One request to a model server, in a ``with`` block; its tokens are added to the meter however it ends.

    Parameters
    ----------
    meter: counts the tokens.
    rates: the rates of the model.
    request: the size of the prompt, from ``prompt_size``.
    """

    __slots__ = ("_events", "_listed", "_meter", "_open", "_rates", "_request", "_streamed", "_text", "_usage")

    def __init__(self, meter: Meter, rates: TokenRates, request: int) -> None:
        self._meter = meter
        self._rates = rates
        self._request = request
        self._open = True
        self._streamed = False
        self._usage: object = None
        self._events = 0
        self._listed = 0
        self._text = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._open or isinstance(error, UNSENT):
            return
        if self._streamed:
            self._end_stream(complete=error is None)
        else:
            prompt, completion = self._rates.prompt(self._request), self._rates.longest
            self._meter.lost = self._meter.lost.plus(Usage(prompt, 0, completion, prompt + completion))

    def refused(self) -> None:
        """The server answers with an error status, which is not billed."""
        self._open = False

    def answered(self, answer: Answer) -> None:
        """The server sent a whole answer."""
        self._open = False
        usage = Usage.of(answer, 0 if answer.prompt_tokens is not None else self._rates.prompt(self._request))
        if answer.prompt_tokens is not None:
            self._rates.learn(usage, self._request)
        self._meter.answered = self._meter.answered.plus(usage)

    def streaming(self) -> None:
        """The server begins a stream: of what it generates, only what arrives is billed."""
        self._streamed = True

    def received(self, events: list[StreamEvent]) -> None:
        """Events of the stream have arrived."""
        for _, chunk in events:
            if chunk.usage is not None:
                self._usage = chunk.usage
            for choice in chunk.choices:
                delta = choice.delta
                if part := delta.content or delta.reasoning_content or delta.reasoning or delta.tool_calls:
                    self._events += 1
                    self._text += len(str(part).encode(errors="replace"))
                listed = getattr(choice.logprobs, "content", None)
                self._listed += len(listed) if listed else 0

    def _end_stream(self, *, complete: bool) -> None:
        counts = self._usage if isinstance(self._usage, dict) else {}
        prompt, completion = token_count(counts.get("prompt_tokens")), token_count(counts.get("completion_tokens"))
        if prompt is not None and completion is not None:
            usage = Usage(prompt, cached_tokens(counts, prompt) or 0, completion)
            if complete:
                self._rates.learn(usage, self._request, self._events)
        else:
            prompt = self._rates.prompt(self._request)
            completion = self._listed or self._rates.completion(self._events, self._text)
            usage = Usage(prompt, 0, completion, prompt + completion)
        if complete:
            self._meter.answered = self._meter.answered.plus(usage)
        else:
            self._meter.lost = self._meter.lost.plus(usage)
