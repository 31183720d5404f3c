"""What is changed in a caller's request before a model gets it.

A gateway sends one request to two models, whose servers accept different fields. The changes are made in this order:

1. Fields that the server refuses are dropped, and others get the name by which the server knows them.
2. The limit on tokens gets the name that the server understands, and is raised to a least value: a thinking model
   spends tokens before it answers.
3. ``stream_options`` is left out if the server does not understand it.
4. In the history, ids of tool calls are replaced by ids that the server accepts, and thinking is taken out.

The fields of the model's own ``body`` are added afterwards, and so are never changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bpac.models.adapting.thinking_blocks import filled_thinking, only_marked_thinking, without_thinking
from bpac.models.adapting.tool_call_ids import IdStyle, with_accepted_ids
from bpac.wire.originals import ORIGINAL

TokenLimit = Literal["max_tokens", "max_completion_tokens"]
ThinkingInHistory = Literal["keep", "drop", "fill", "own"]

_CHANGES: Mapping[str, Callable[[Any], Any]] = {
    "drop": without_thinking, "fill": filled_thinking, "own": only_marked_thinking,
}  # fmt: skip
_LIMITS: tuple[TokenLimit, TokenLimit] = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Adaptation:
    """Makes requests acceptable to one model server.

    Parameters
    ----------
    drop: fields that are left out; ``a.b`` is the field ``b`` of the object ``a``, or of each object in the list ``a``.
    rename: fields that get another name. If a request has a field of the new name already, that one is sent.
    token_limit: the name of the limit on generated tokens on this server; none if both names are understood.
    least_max_tokens: a smaller limit in a request is raised to this; a request without a limit stays without one.
    stream_options: whether the server understands ``stream_options``.
    tool_call_ids: which ids of tool calls the server accepts.
    thinking_in_history: whether thinking in earlier answers is sent (``keep``), taken out (``drop``), sent and, where
        it is missing, sent as an empty text (``fill``), or sent if it is known to be the model's own (``own``).

    >>> Adaptation(drop=frozenset({"top_p"}), token_limit="max_completion_tokens")({"top_p": 0.9, "max_tokens": 50})
    {'max_completion_tokens': 50}
    """

    drop: frozenset[str] = frozenset()
    rename: Mapping[str, str] = field(default_factory=dict)
    token_limit: TokenLimit | None = None
    least_max_tokens: int = 0
    stream_options: bool = True
    tool_call_ids: IdStyle = "any"
    thinking_in_history: ThinkingInHistory = "keep"

    def __call__(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request as the server accepts it; the caller's is not changed."""
        adapted = self._dropped(body)
        if ORIGINAL in adapted:
            adapted[ORIGINAL] = self._original(adapted[ORIGINAL])
        for old, new in self.rename.items():
            if old in adapted:
                value = adapted.pop(old)
                adapted.setdefault(new, value)
        if self.token_limit is not None:
            _rename_limit(adapted, self.token_limit)
        if self.least_max_tokens:
            _raise_limit(adapted, self.least_max_tokens)
        if not self.stream_options:
            adapted.pop("stream_options", None)
        if isinstance(messages := adapted.get("messages"), list):
            adapted["messages"] = self._history(messages)
        return adapted

    def _dropped(self, body: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in body.items() if name not in self.drop}
        for path in self.drop:
            if "." in path:
                _drop_within(kept, *path.split("."))
        return kept

    def _original(self, original: Mapping[str, Any]) -> dict[str, Any]:
        """What the caller's API says beyond a chat: fields and headers in ``drop`` are left out there as well."""
        names = [name for name in ("fields", "headers") if name in original]
        return {**original, **{name: self._dropped(original[name]) for name in names}}

    def _history(self, messages: list[Any]) -> list[Any]:
        if self.thinking_in_history != "keep":
            messages = [_CHANGES[self.thinking_in_history](message) for message in messages]
        if self.tool_call_ids != "any":
            messages = [with_accepted_ids(message, self.tool_call_ids) for message in messages]
        return messages


def _drop_within(body: dict[str, Any], name: str, *rest: str) -> None:
    """Leave out a field of an object within the body, or of each object in a list.

    An object that has no other fields is left out with it.
    """
    inner = body.get(name)
    if not rest:
        body.pop(name, None)
    elif isinstance(inner, list):
        body[name] = kept_items = [dict(item) if isinstance(item, Mapping) else item for item in inner]
        for item in kept_items:
            if isinstance(item, dict):
                _drop_within(item, *rest)
    elif isinstance(inner, Mapping) and rest[0] in inner:
        body[name] = kept = dict(inner)  # the object itself is the caller's
        _drop_within(kept, *rest)
        if not kept:
            del body[name]


def _rename_limit(body: dict[str, Any], wanted: TokenLimit) -> None:
    (other,) = set(_LIMITS) - {wanted}
    limit = body.pop(other, None)
    if limit is not None and body.get(wanted) is None:
        body[wanted] = limit


def _raise_limit(body: dict[str, Any], least: int) -> None:
    for name in _LIMITS:
        limit = body.get(name)
        # Anything but a positive number is the caller's mistake, which the server explains.
        if isinstance(limit, int | float) and not isinstance(limit, bool) and 0 < limit < least:
            body[name] = least
