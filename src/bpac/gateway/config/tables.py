"""Reading configuration tables: every key is known or refused, and every mistake is named by its path."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from bpac.errors import InputError, SettingsError
from bpac.models.fields import secret

T = TypeVar("T")
_MISSING: Any = object()


class Section:
    """A table of a configuration file; take out what is known, then ``end``.

    Parameters
    ----------
    values: the table.
    path: where it stands, for errors.

    >>> table = Section({"retries": 2, "colour": "red"}, "models.a")
    >>> table.take("retries", int)
    2
    >>> table.end()
    Traceback (most recent call last):
    ...
    bpac.errors.SettingsError: models.a.colour: unknown key; known here: retries
    """

    def __init__(self, values: object, path: str) -> None:
        if not isinstance(values, Mapping):
            raise SettingsError(f"{path} must be a table, got {values!r}")
        self._rest = dict(values)
        self._known: list[str] = []
        self.path = path

    def peek(self, key: str) -> Any:
        """The value of a key, of any kind, without taking it; none if it is not there."""
        return self._rest.get(key)

    def take(self, key: str, kind: type[T], default: Any = _MISSING) -> T:
        """The value of a key, of that kind; whole numbers also pass for numbers."""
        self._known.append(key)
        value = self._rest.pop(key, _MISSING)
        if value is _MISSING:
            if default is _MISSING:
                raise SettingsError(f"{self.at(key)} is missing")
            fallback: T = default
            return fallback
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise SettingsError(f"{self.at(key)} must be {_KINDS[kind]}, got {value!r}")
        kept: T = value
        return kept

    def filled(self, key: str) -> str:
        """A text that is not empty."""
        value = self.take(key, str)
        if not value.strip():
            raise SettingsError(f"{self.at(key)} must not be empty")
        return value

    def texts(self, key: str) -> dict[str, str]:
        """A table of texts; empty if it is not there."""
        table = self.take(key, dict, {})
        for name, value in table.items():
            if not isinstance(value, str):
                raise SettingsError(f"{self.at(key)}.{name} must be a text, got {value!r}")
        return table

    def secret(self, key: str) -> str | None:
        """A text, or what the environment variable ``env:NAME`` holds."""
        value = self.take(key, str, None)
        return None if value is None else secret(value, self.at(key))

    def at(self, key: str) -> str:
        """Where a key stands."""
        return f"{self.path}.{key}" if self.path else key

    def rest(self) -> dict[str, Any]:
        """All that was not taken: settings that somebody else knows."""
        rest, self._rest = self._rest, {}
        return rest

    def end(self) -> None:
        """Raise ``SettingsError`` if there is a key that nobody asked for."""
        for key in self._rest:
            raise SettingsError(f"{self.at(key)}: unknown key; known here: {', '.join(sorted(set(self._known)))}")


_KINDS: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def at(path: str, make: Callable[[], T]) -> T:
    """What is made, or its complaint with the path of the mistake in front."""
    try:
        return make()
    except (InputError, TypeError) as error:
        raise SettingsError(f"{path}: {error}") from error


def named(table: Section, key: str, default: str, make: Callable[..., Any]) -> Any:
    """A choice by its name, or by a table with ``name`` and settings."""
    if not isinstance(table.peek(key), dict):
        name = table.take(key, str, default)
        return at(table.at(key), lambda: make(name))
    inner = Section(table.take(key, dict), table.at(key))
    name = inner.take("name", str, default)
    return at(table.at(key), lambda: make(name, **inner.rest()))
