"""Pairing: which answer of the draft and which of the expert belong to one question.

1. Calls with the same trace and the same messages belong together; without traces, calls with the same messages. They
   are paired as they come: the first draft with the first expert, and so on.
2. What is left at the end is paired by its trace alone, if the trace has one draft and one expert left: prompts of
   the two may differ by instructions.
3. What is left then is paired by its messages alone: another run may have asked the same questions.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator
from typing import Literal, NamedTuple

from bpac.benchmarks.own import last_text
from bpac.importing.call import LoggedCall

PairBy = Literal["auto", "trace", "prompt", "question"]
PAIR_BY: tuple[PairBy, ...] = ("auto", "trace", "prompt", "question")


class Pair(NamedTuple):
    """The two answers to one question.

    Parameters
    ----------
    draft, expert: the calls.
    """

    draft: LoggedCall
    expert: LoggedCall


class Pairing:
    """Finds pairs.

    Parameters
    ----------
    by: what calls that belong together have in common: the ``trace``, all messages (``prompt``), or the last message of
        the user (``question``); ``auto`` tries trace and messages, in that order.
    """

    def __init__(self, by: PairBy = "auto") -> None:
        self._by = by
        # Calls that wait for the other one, by key and role, in order.
        self._waiting: dict[Hashable, dict[str, deque[LoggedCall]]] = {}

    def add(self, call: LoggedCall, role: str) -> Pair | None:
        """Add a call; the pair that it completes, if it completes one now."""
        return self._matched(self._waiting, self._key(call), call, role)

    def rest(self) -> Iterator[Pair]:
        """The pairs among what is left; afterwards ``unpaired`` has what is left then."""
        if self._by != "auto":
            return
        by_trace: dict[str, list[tuple[str, LoggedCall]]] = defaultdict(list)
        for role, call in self.unpaired():
            if call.trace:
                by_trace[call.trace].append((role, call))
        for calls in by_trace.values():
            if sorted(role for role, _ in calls) == ["draft", "expert"]:
                found = dict(calls)
                for role, call in calls:
                    self._waiting[self._key(call)][role].remove(call)
                yield Pair(found["draft"], found["expert"])
        left, self._waiting = list(self.unpaired()), {}
        for role, call in left:
            # A call whose messages are not known has nothing in common with any other.
            key = call.prompt_key or id(call)
            if (pair := self._matched(self._waiting, key, call, role)) is not None:
                yield pair

    def unpaired(self) -> Iterator[tuple[str, LoggedCall]]:
        """The calls without a counterpart, each with its role."""
        for waiting in self._waiting.values():
            for role, calls in waiting.items():
                yield from ((role, call) for call in list(calls))

    def _key(self, call: LoggedCall) -> Hashable:
        if self._by == "trace":
            return call.trace or id(call)
        if self._by == "question":
            return last_text(list(call.messages)).strip() or id(call) if call.messages else id(call)
        key = (call.trace if self._by == "auto" else "", call.prompt_key)
        return key if any(key) else id(call)

    @staticmethod
    def _matched(
        waiting: dict[Hashable, dict[str, deque[LoggedCall]]], key: Hashable, call: LoggedCall, role: str
    ) -> Pair | None:
        queues = waiting.setdefault(key, {"draft": deque(), "expert": deque()})
        others = queues["expert" if role == "draft" else "draft"]
        if not others:
            queues[role].append(call)
            return None
        other = others.popleft()
        if not others and not queues[role]:
            del waiting[key]
        return Pair(call, other) if role == "draft" else Pair(other, call)
