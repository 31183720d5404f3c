"""Environment variables that a configuration file names and that are not set."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

_PLACEHOLDER = "not set"


def missing_variables(values: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The settings that name an environment variable which is not set, each with the name of the variable.

    >>> list(missing_variables({"models": {"a": {"api_key": "env:NO_SUCH_VARIABLE"}}}))
    [('models.a.api_key', 'NO_SUCH_VARIABLE')]
    """
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from missing_variables(value, f"{path}.{name}" if path else name)
    elif isinstance(values, list):
        for number, value in enumerate(values):
            yield from missing_variables(value, f"{path}[{number}]")
    elif isinstance(values, str) and values.startswith("env:"):
        name = values.removeprefix("env:")
        if not os.environ.get(name, "").strip():
            yield path, name


def without_missing(values: Any) -> Any:
    """The same settings with a placeholder for each environment variable that is not set."""
    if isinstance(values, Mapping):
        return {name: without_missing(value) for name, value in values.items()}
    if isinstance(values, list):
        return [without_missing(value) for value in values]
    missing = next(missing_variables(values), None)
    return values if missing is None else f"{_PLACEHOLDER} {missing[1]}"
