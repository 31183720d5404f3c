"""The key ``learn`` of a route: which scores its games learn, and what it leaves to a game that has begun."""

from dataclasses import fields
from typing import Any

from bpac.errors import SettingsError
from bpac.gateway.chat.drafts.features import FEATURES
from bpac.models.prompts import PROMPT_FEATURES
from bpac.routing.learning.learned_score import FIT_TOGETHER, LearnedScore

# Whether scores are learned, or a table of settings; None if the file does not say.
Learn = bool | dict[str, Any] | None
KEYS = ("fit_at", "shares", "least_losses", "ridge", "least_gain", "embeddings")


def learned_score(learn: Learn, *, together: bool = False) -> LearnedScore:
    """The settings of new games that learn; ``SettingsError`` if they cannot be used.

    Parameters
    ----------
    learn: the value of the key, other than false.
    together: whether the games of the route are segments, which learn together (default: false).
    """
    values = dict(learn) if isinstance(learn, dict) else {}
    unknown = [key for key in values if key not in KEYS]
    if unknown:
        raise SettingsError(f"learn: unknown key {unknown[0]!r}; known: {', '.join(KEYS)}")
    embeddings = values.pop("embeddings", False)
    if not isinstance(embeddings, bool):
        raise SettingsError(f"learn: embeddings must be true or false, got {embeddings!r}")
    if together and not values.keys() & {"fit_at", "shares"}:
        values["fit_at"] = FIT_TOGETHER
    lists: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    try:
        return LearnedScore(features=(*FEATURES, *(PROMPT_FEATURES if embeddings else ())), **lists)
    except SettingsError as error:
        raise SettingsError(f"learn: {error}") from error


def open_terms(learn: Learn) -> frozenset[str]:
    """The terms of a game that the key does not prescribe: a game goes on with those it began with.

    >>> "policy.learn.kind" in open_terms(None), "policy.learn.kind" in open_terms(True)
    (True, False)
    """
    if learn is False:
        return frozenset()
    given = {"features" if key == "embeddings" else key for key in learn} if isinstance(learn, dict) else set()
    names = [part.name for part in fields(LearnedScore) if part.name not in given]
    return frozenset(f"policy.learn.{name}" for name in [*names, *(["kind"] if learn is None else [])])
