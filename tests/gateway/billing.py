"""A scripted model server that keeps the bill of each model: every token that it was sent and produced."""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bpac.testing import Reply, Request, Script
from bpac.wire.usage import NOTHING, Usage


def prompt_tokens(request: Request) -> int:
    """One token per word of the messages."""
    return sum(len(re.findall(r"\S+", str(message["content"]))) for message in request.body["messages"])


@dataclass(frozen=True, slots=True)
class BilledReply(Reply):
    """A reply that puts on the bill what a vendor would: whole answers entirely, streams as far as they were sent.

    Parameters
    ----------
    bill: adds tokens to the bill.
    cached: cached tokens of the prompt; none if the usage does not say (default: none).
    counts: whether the reply has a usage (default: yes).
    stall_after: after so many tokens of a stream nothing more is sent, until ``resume`` is set (default: never).
    """

    bill: Callable[[Usage], None] = lambda usage: None
    cached: int | None = None
    counts: bool = True
    stall_after: int | None = None
    resume: threading.Event = field(default_factory=threading.Event)

    def body(self, request: Request) -> dict[str, Any]:
        """A whole reply: its tokens are billed, whether the client waits for it or not."""
        body = Reply.body(self, request)
        if self.status < 300:
            generated = body["usage"]["completion_tokens"]
            self.bill(Usage(prompt_tokens(request), self.cached or 0, generated))
            body["usage"] = self._counted(request, generated)
        return body

    def chunks(self, request: Request) -> Iterator[dict[str, Any]]:
        """A streamed reply: a token is billed when it is sent."""
        self.bill(Usage(prompt_tokens(request), self.cached or 0))
        sent = 0
        for at, chunk in enumerate(Reply.chunks(self, request)):
            if at == self.cut:
                yield chunk  # never sent
                return
            delta = chunk["choices"][0]["delta"] if chunk["choices"] else {}
            if delta.get("content") or delta.get("reasoning_content"):
                if sent == self.stall_after:
                    self.resume.wait(60.0)
                    return
                sent += 1
                self.bill(Usage(completion=1))
            if "usage" in chunk:
                chunk["usage"] = self._counted(request, sent)
                if not self.counts:
                    continue
            yield chunk

    def _counted(self, request: Request, generated: int) -> dict[str, Any] | None:
        if not self.counts:
            return None
        details = {} if self.cached is None else {"prompt_tokens_details": {"cached_tokens": self.cached}}
        return {"prompt_tokens": prompt_tokens(request), "completion_tokens": generated, **details}


class Bills:
    """The bills of all models on a scripted server, by the name of the model."""

    def __init__(self) -> None:
        # Ends the streams that are stalled.
        self.resume = threading.Event()
        self._bills: dict[str, Usage] = defaultdict(lambda: NOTHING)
        self._lock = threading.Lock()

    def __getitem__(self, model: str) -> Usage:
        with self._lock:
            return self._bills[model]

    def adding(self, model: str) -> Callable[[Usage], None]:
        """A function that adds to the bill of a model."""

        def add(usage: Usage) -> None:
            with self._lock:
                self._bills[model] = self._bills[model].plus(usage)

        return add

    def script(self, reply: Callable[[Request], dict[str, Any]]) -> Script:
        """A script whose replies are billed.

        Parameters
        ----------
        reply: the parameters of the reply to a request.
        """

        def billed(request: Request) -> Reply:
            return BilledReply(bill=self.adding(request.body["model"]), resume=self.resume, **reply(request))

        return billed
