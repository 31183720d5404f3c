"""The terms of a game: what its promise is about, with every default written out, and what differs between two games.

1. Terms are JSON text in the first line of a journal. Defaults are written out, so that a default that a later version
   changes is a change of the terms, and a default that an operator writes into the file is none.
2. Terms that an earlier version wrote without defaults are compared after filling them in.
3. How bets are made may improve while the promise stays the same (``IMPROVED``). A game that began before goes on as it
   began, with the settings in its journal.
4. What the file leaves open (``RouteSettings.open_terms``) does not end a game: it goes on with what it began with.
5. A term that is empty (``null``, ``{}``, ``[]``, ``""``) is the same as a term that is missing, except within the
   fields that are added to the requests of a model.
"""

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from bpac.errors import InputError
from bpac.gateway.config.routes.losses import DEFAULT_LOSS
from bpac.gateway.config.routes.routes import DEFAULT_SCORE, RouteSettings
from bpac.models.judging import Judge
from bpac.routing.router import Router
from bpac.scores import SCORES, EquallySure, named_score

# The defaults of each loss, by the name of the loss. Every other default is in the settings of score and router.
LOSS_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "answer": {"equal": "final"},
    "judge": {part.name: part.default for part in fields(Judge) if part.name in ("votes", "attempts", "timeout")},
    "tool_call": {"ordered": False},
}
# Terms that the losses of a draft and its score depend on. Games that agree in them have the same rounds.
ROUND_TERMS = ("draft", "expert", "judge", "score", "loss", "verdicts", "decide_only", "about", "episode")
# Settings of the router that older games do not have, and that promise nothing else than games without them.
IMPROVED = (
    *("policy.floor_fractions", "policy.dither", "policy.spread"),
    *("exploration.whole_game", "exploration.in_time", "certificate"),
)
# The term that says whether scores are learned, and those that say how.
LEARNS, _LEARN = "policy.learn.kind", "policy.learn."
# Values of these terms are not logged: operators may put anything into the body of a request.
_PRIVATE = ("draft", "expert", "judge")
# Tables that are compared as they are: a server may tell an empty field from a missing one.
_WHOLE = tuple(f"{model}.{table}" for model in _PRIVATE for table in ("body", "requests"))


class TermChange(NamedTuple):
    """A term that differs.

    Parameters
    ----------
    name: of the term, as in the configuration file where it has a key there.
    before, after: its values; None where it is missing.
    """

    name: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.name.split(".")[0] in _PRIVATE and not self.name.endswith(".model"):
            return f"{self.name} changed"
        return f"{self.name} changed from {_shown(self.before)} to {_shown(self.after)}"


def terms_of(route: RouteSettings, router: Router) -> str:
    """The terms of a game of a route, as JSON text.

    Parameters
    ----------
    route: the settings of the route.
    router: any router of the route, with the alpha of the game.
    """
    return json.dumps(_with_defaults(json.loads(route.terms(router))), sort_keys=True)


def changes(before: str, after: str, open_terms: Container[str] = ()) -> list[TermChange]:
    """The terms that differ; empty if the terms are equal.

    Parameters
    ----------
    before, after: terms as JSON text, with or without their defaults.
    open_terms: names of terms that may differ (default: none).

    >>> old = '{"score": "entropy", "router": {"epsilon": 0.05}}'
    >>> new = '{"score": {"name": "entropy", "top": 10}, "router": {"epsilon": 0.1}}'
    >>> [str(change) for change in changes(old, new)]
    ['epsilon changed from 0.05 to 0.1']
    """
    old, new = _flat(before), _flat(after)
    found = [
        TermChange(name, old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if _text(old.get(name)) != _text(new.get(name))
        and not (name in IMPROVED and name not in old)
        and name not in open_terms
    ]
    # Whether scores are learned says enough; the settings of a game that learns need not be listed one by one.
    whether = any(change.name == LEARNS for change in found)
    return [change for change in found if not whether or change.name == LEARNS or not change.name.startswith(_LEARN)]


def score_of(terms: str) -> str:
    """The name of the score that a game is about; empty if its terms do not say.

    >>> score_of('{"score": {"name": "entropy", "first_tokens": 20}}')
    'entropy'
    """
    try:
        score = _with_defaults(json.loads(terms))["score"]
    except (ValueError, TypeError, AttributeError):
        return ""
    while isinstance(score, dict) and isinstance(score.get("score"), dict):
        score = score["score"]  # of the first tokens, or with a fallback
    kind = score.get("kind") if isinstance(score, dict) else None
    return next((name for name, one in SCORES.items() if getattr(one, "__name__", "") == kind), "")


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def is_switch(terms: str) -> bool:
    """Whether a game asks if the draft's model may replace the expert as a whole.

    Parameters
    ----------
    terms: its terms, as JSON text.

    >>> is_switch('{"score": "none"}'), is_switch('{"score": "entropy"}'), is_switch("{}")
    (True, False, False)
    """
    return bool(_flat(terms).get("score.kind") == EquallySure.__name__)


def of_rounds(found: list[TermChange]) -> list[TermChange]:
    """Those changes that make the rounds of two games incomparable: other models, another score or another loss."""
    return [change for change in found if change.name.split(".")[0] in ROUND_TERMS]


def _flat(text: str) -> dict[str, Any]:
    """Every value that is not empty, by its path."""
    try:
        terms = json.loads(text)
    except ValueError:
        terms = text
    if not isinstance(terms, dict):
        return {"terms": terms}
    terms = _with_defaults(terms)
    terms |= terms.pop("router", {})
    return dict(_values("", terms))


def _values(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and path not in _WHOLE:
        for name, inner in value.items():
            yield from _values(f"{path}.{name}" if path else name, inner)
    elif value not in (None, {}, [], ""):
        yield path, _number(value)


def _number(value: Any) -> Any:
    """A number as a float, so that 1 and 1.0 are equal; ``true`` is not a number."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53 else value


def _with_defaults(terms: dict[str, Any]) -> dict[str, Any]:
    full = dict(terms)
    for name in ("draft", "expert", "judge"):
        if isinstance(value := full.get(name), list) and len(value) >= 2:
            full[name] = {"model": value[0], "body": value[1], "requests": [part for part in value[2:] if part]}
    full["score"] = _score(full.get("score"))
    loss = full.get("loss")
    if isinstance(loss, dict):
        defaults = LOSS_DEFAULTS.get(loss.get("name", DEFAULT_LOSS), {})
        # The judge is a term of its own; here is only the name of its table.
        full["loss"] = {**defaults, **{key: value for key, value in loss.items() if key != "judge"}}
    return full


def _score(settings: Any) -> Any:
    """A score with all its settings; what cannot be read as one, or was written out before, is left as it is."""
    named = {"name": settings} if isinstance(settings, str) else settings
    if not isinstance(named, dict) or "kind" in named:
        return settings
    try:
        return _written_out(named_score(**{"name": DEFAULT_SCORE, **named}))
    except (InputError, TypeError):
        return settings


def _written_out(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: _written_out(getattr(value, part.name)) for part in fields(value) if part.init}
        return {"kind": type(value).__name__, **parts}
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
