"""Settings of a loss: how the draft is graded against the expert's answer."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from bpac.arguments import one_of
from bpac.errors import SettingsError
from bpac.gateway.config.toml_tables import ConfigTable, Count, Seconds, as_table, read_table

# Settings that are not in the file stay unset: their defaults are those of the graders.


class AnswerSettings(ConfigTable, frozen=True):
    """``answer``: whether the two final answers are equal."""

    equal: Literal["final", "text", "mathematics"] | UnsetType = UNSET


class JudgeSettings(ConfigTable, frozen=True):
    """``judge``: a third model marks both answers."""

    judge: str
    votes: Count | UnsetType = UNSET
    attempts: Count | UnsetType = UNSET
    timeout: Seconds | UnsetType = UNSET


class EmbeddingSettings(ConfigTable, frozen=True):
    """``embedding``: the distance between the two texts."""


class ToolCallSettings(ConfigTable, frozen=True):
    """``tool_call``: whether the two answers call the same tools with the same arguments."""

    ordered: bool | UnsetType = UNSET


class ExternalSettings(ConfigTable, frozen=True):
    """``external``: losses are reported to ``/v1/feedback``."""


LOSSES: Mapping[str, type[ConfigTable]] = {
    "answer": AnswerSettings,
    "judge": JudgeSettings,
    "embedding": EmbeddingSettings,
    "tool_call": ToolCallSettings,
    "external": ExternalSettings,
}
DEFAULT_LOSS = "answer"
# Losses most of which are neither 0 nor close to 1: marks of a judge, distances.
GRADED = ("judge", "embedding")


def read_loss(value: object, path: str, models: Iterable[str]) -> dict[str, Any]:
    """A loss as a table with its name, whether the file gives its name only or a table.

    Parameters
    ----------
    value: the setting.
    path: where it is in the file, for error messages.
    models: names of all models.

    >>> read_loss("answer", "routes.homework.loss", [])
    {'name': 'answer'}
    """
    table = {"name": value} if isinstance(value, str) else dict(as_table(value, path))
    name = table.pop("name", DEFAULT_LOSS)
    one_of(name, f"{path}: name", tuple(LOSSES))
    if name == "judge":
        check_model(table, "judge", path, models)
    read_table(table, LOSSES[name], path)
    # As it is written in the file: it is a part of the terms of a game, and other terms begin another game.
    return {"name": name, **table}


def check_model(table: Mapping[str, object], key: str, path: str, models: Iterable[str]) -> None:
    """Raise ``SettingsError`` unless a key of a table names a model."""
    names = list(models)
    if key not in table:
        raise SettingsError(f"{path}.{key} is missing: give the name of a model, one of {', '.join(names)}")
    if table[key] not in names:
        raise SettingsError(
            f"{path}.{key}: there is no model {table[key]!r}; the models are {', '.join(names) or 'none'}"
        )
