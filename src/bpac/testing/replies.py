"""Requests and replies of a scripted server, in the words of the OpenAI protocol."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bpac.answer import Token


@dataclass(frozen=True, slots=True)
class Request:
    """A request the server saw.

    Parameters
    ----------
    number: which it was, from 1.
    body: its JSON.
    headers: its headers, by their names in lower case.
    at: when it came, on the monotonic clock.
    """

    number: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0

    @property
    def question(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server sends for a request, whole or as a stream, as the request wants it.

    Parameters
    ----------
    text: the answer, a token a word.
    tokens: the answer's tokens, in the place of ``text``.
    probability: of each token of ``text``.
    logprobs: whether the server gives log-probabilities to those who ask.
    reasoning: thoughts, apart from the answer.
    tool_calls: calls the model wants made.
    finish_reason: why it stopped.
    status: the HTTP status; from 300 on ``text`` is the error's message.
    headers: further headers.
    raw: sent in the place of a completion.
    delay: seconds before anything is sent.
    pause: seconds before each piece of a stream.
    cut: break the connection after so many pieces of a stream, or in the middle of a whole answer.
    """

    text: str = "42"
    tokens: tuple[Token, ...] = ()
    probability: float = 0.9
    logprobs: bool = True
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delay: float = 0.0
    pause: float = 0.0
    cut: int | None = None

    def answer_tokens(self) -> tuple[Token, ...]:
        """The tokens of the answer.

        >>> [token.text for token in Reply("The answer is 42").answer_tokens()]
        ['The', ' answer', ' is', ' 42']
        """
        logprob = math.log(self.probability)
        words = re.findall(r"\s*\S+|\s+\Z", self.text)
        return self.tokens or tuple(Token(word, logprob, (logprob,), (word,)) for word in words)

    def body(self, request: Request) -> dict[str, Any]:
        """The whole reply."""
        if self.status >= 300:
            return {"error": {"message": self.text, "type": "scripted", "code": self.status}}
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(token.text for token in self.answer_tokens()),
        }
        message |= {"reasoning_content": self.reasoning} if self.reasoning else {}
        message |= {"tool_calls": list(self.tool_calls)} if self.tool_calls else {}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        choice["logprobs"] = self._logprobs(request, self.answer_tokens())
        return {**self._head(request, "chat.completion"), "choices": [choice], "usage": self._usage()}

    def pieces(self, request: Request) -> Iterator[dict[str, Any]]:
        """The reply, piece by piece."""
        head = self._head(request, "chat.completion.chunk")

        def piece(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None, **more}]}

        yield piece({"role": "assistant", "content": ""})
        if self.reasoning:
            yield piece({"reasoning_content": self.reasoning})
        for token in self.answer_tokens():
            yield piece({"content": token.text}, logprobs=self._logprobs(request, (token,)))
        for index, call in enumerate(self.tool_calls):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            opened = {**call, "index": index, "function": {"name": name, "arguments": ""}}
            yield piece({"tool_calls": [opened]})
            for part in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
                yield piece({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield piece({}, finish_reason=self.finish_reason)
        if (request.body.get("stream_options") or {}).get("include_usage"):
            yield {**head, "choices": [], "usage": self._usage()}

    def _head(self, request: Request, kind: str) -> dict[str, Any]:
        return {"id": f"scripted-{request.number}", "object": kind, "created": 0, "model": request.body.get("model")}

    def _usage(self) -> dict[str, int]:
        generated = len(self.answer_tokens()) + len(self.reasoning.split())
        return {"prompt_tokens": 7, "completion_tokens": generated, "total_tokens": 7 + generated}

    def _logprobs(self, request: Request, tokens: tuple[Token, ...]) -> dict[str, Any] | None:
        if not (self.logprobs and request.body.get("logprobs")):
            return None
        count = int(request.body.get("top_logprobs") or 0)  # to JSON 5.0 is a whole number
        listed = []
        for token in tokens:
            top = [_entry(*other) for other in zip(token.top_texts, token.top, strict=True)][:count]
            listed.append({**_entry(token.text, token.logprob), "top_logprobs": top})
        return {"content": listed}


# Longer than anybody's patience.
SILENCE = Reply(delay=60.0)

Script = Callable[[Request], Reply]


def in_turn(*replies: Reply) -> Script:
    """One reply after the other; the last one for ever.

    >>> [in_turn(Reply("a"), Reply("b"))(Request(number, {})).text for number in (1, 2, 3)]
    ['a', 'b', 'b']
    """
    return lambda request: replies[min(request.number, len(replies)) - 1]


def _entry(text: str, logprob: float) -> dict[str, Any]:
    # JSON has no infinities; servers write null.
    return {"token": text, "logprob": logprob if math.isfinite(logprob) else None, "bytes": list(text.encode())}
