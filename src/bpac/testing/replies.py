"""Requests and replies of a scripted server, in the format of OpenAI's chat API; the others are in files beside it."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bpac.answer import Token
from bpac.errors import InputError
from bpac.testing import messages_format, responses_format

PROMPT_TOKENS = 7
_FORMATS = {"messages": messages_format, "responses": responses_format}


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the server received.

    Parameters
    ----------
    number: its number in the order of arrival, starting with 1.
    body: its JSON body.
    headers: its headers by name, in lower case.
    at: its time of arrival, as a value of ``time.monotonic()``.
    path: its path and query.

    >>> Request(1, {"messages": [{"role": "user", "content": "6 · 7?"}]}).question
    '6 · 7?'
    """

    number: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0
    path: str = ""

    @property
    def question(self) -> str:
        """The content of the last message."""
        return str((self.body.get("messages") or self.body["input"])[-1]["content"])

    @property
    def api(self) -> str:
        """The API that it is a request of, by its path: ``responses``, ``messages`` or ``chat``.

        >>> Request(1, {}, path="/v1/messages?beta=true").api
        'messages'
        """
        last = self.path.partition("?")[0].rpartition("/")[2]
        return last if last in ("responses", "messages") else "chat"


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a request: a completion, a stream if the request asks for one, or an error.

    A request to ``/responses`` or ``/messages`` gets the same reply in the format of that API.

    Parameters
    ----------
    text: the answer; each word is one token (default: ``42``).
    tokens: the tokens of the answer, instead of ``text``.
    probability: the probability of each token of ``text`` (default: 0.9).
    logprobs: whether log-probabilities are sent if the request asks for them (default: true).
    reasoning: the model's reasoning, sent as ``reasoning_content`` (default: none).
    tool_calls: tool calls in the format of OpenAI's chat API (default: none).
    finish_reason: the finish reason (default: ``stop``).
    cached_tokens: how many of the prompt's 7 tokens came from a cache (default: 0).
    status: the HTTP status (default: 200); from 300 on, ``text`` is the message of the error.
    headers: further HTTP headers (default: none).
    raw: bytes to send instead of a completion, for example invalid JSON.
    delay: seconds to wait before anything is sent (default: 0).
    pause: seconds to wait before each chunk of a stream (default: 0).
    cut: close the connection after this many chunks of a stream, or in the middle of a complete reply (default: never).

    >>> Reply("The answer is 42", probability=0.5).body(Request(1, {}))["choices"][0]["message"]["content"]
    'The answer is 42'
    >>> Reply("no capacity", status=503).body(Request(1, {}))["error"]["message"]
    'no capacity'
    """

    text: str = "42"
    tokens: tuple[Token, ...] = ()
    probability: float = 0.9
    logprobs: bool = True
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str = "stop"
    cached_tokens: int = 0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    delay: float = 0.0
    pause: float = 0.0
    cut: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.probability <= 1.0:
            raise InputError(f"the probability of a Reply must be in (0, 1], got {self.probability!r}")

    def answer_tokens(self) -> tuple[Token, ...]:
        """The tokens of the answer.

        >>> [token.text for token in Reply("The answer is 42").answer_tokens()]
        ['The', ' answer', ' is', ' 42']
        """
        logprob = math.log(self.probability)
        words = re.findall(r"\s*\S+|\s+\Z", self.text)
        return self.tokens or tuple(Token(word, logprob, (logprob,), (word,)) for word in words)

    def body(self, request: Request) -> dict[str, Any]:
        """The JSON body of a complete reply to a request."""
        if request.api != "chat":
            other: dict[str, Any] = _FORMATS[request.api].body(self, request)
            return other
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

    def chunks(self, request: Request) -> Iterator[dict[str, Any]]:
        """The JSON bodies of the chunks of a streamed reply to a request, or those of the events of another API."""
        if request.api != "chat":
            yield from _FORMATS[request.api].events(self, request)
            return
        head = self._head(request, "chat.completion.chunk")

        def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None, **more}]}

        yield chunk({"role": "assistant", "content": ""})
        if self.reasoning:
            yield chunk({"reasoning_content": self.reasoning})
        for token in self.answer_tokens():
            yield chunk({"content": token.text}, logprobs=self._logprobs(request, (token,)))
        for index, call in enumerate(self.tool_calls):
            name, arguments = call["function"]["name"], call["function"]["arguments"]
            opened = {**call, "index": index, "function": {"name": name, "arguments": ""}}
            yield chunk({"tool_calls": [opened]})
            for part in (arguments[: len(arguments) // 2], arguments[len(arguments) // 2 :]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield chunk({}, finish_reason=self.finish_reason)
        if (request.body.get("stream_options") or {}).get("include_usage"):
            yield {**head, "choices": [], "usage": self._usage()}

    @property
    def generated(self) -> int:
        """The number of tokens that the model generates, reasoning included."""
        return len(self.answer_tokens()) + len(self.reasoning.split())

    def _head(self, request: Request, kind: str) -> dict[str, Any]:
        return {"id": f"scripted-{request.number}", "object": kind, "created": 0, "model": request.body.get("model")}

    def _usage(self) -> dict[str, Any]:
        generated = self.generated
        cached = {"prompt_tokens_details": {"cached_tokens": self.cached_tokens}} if self.cached_tokens else {}
        counts = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": generated}
        return {**counts, "total_tokens": PROMPT_TOKENS + generated, **cached}

    def _logprobs(self, request: Request, tokens: tuple[Token, ...]) -> dict[str, Any] | None:
        if not (self.logprobs and request.body.get("logprobs")):
            return None
        count = int(request.body.get("top_logprobs") or 0)  # JSON clients may send 5.0
        listed = []
        for token in tokens:
            top = [_entry(*other) for other in zip(token.top_texts, token.top, strict=True)][:count]
            listed.append({**_entry(token.text, token.logprob), "top_logprobs": top})
        return {"content": listed}


# A reply that does not arrive before any reasonable time limit of a client.
SILENCE = Reply(delay=60.0)

# A function that returns the reply to a request.
Script = Callable[[Request], Reply]


def in_turn(*replies: Reply) -> Script:
    """A script that gives one reply after the other, and repeats the last one.

    Parameters
    ----------
    replies: the replies to the first request, the second request and so on; at least one.

    >>> [in_turn(Reply("a"), Reply("b"))(Request(number, {})).text for number in (1, 2, 3)]
    ['a', 'b', 'b']
    """
    if not replies:
        raise InputError("in_turn needs at least one Reply")
    return lambda request: replies[min(request.number, len(replies)) - 1]


def _entry(text: str, logprob: float) -> dict[str, Any]:
    # JSON has no infinity; servers write null.
    return {"token": text, "logprob": logprob if math.isfinite(logprob) else None, "bytes": list(text.encode())}
