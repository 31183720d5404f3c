"""Reading tables of a TOML file: each becomes a frozen value, or an error with path, value and remedy."""

import re
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert, inspect
from msgspec.structs import FieldInfo, fields

from bpac.errors import SettingsError

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0, le=sys.float_info.max)]


class ConfigTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the configuration file: its fields are the keys that the table may have, with their defaults."""


T = TypeVar("T", bound=ConfigTable)


def read_table(values: object, kind: type[T], path: str, **given: Any) -> T:
    """The values of a table, checked.

    Parameters
    ----------
    values: the table, as the TOML parser returns it.
    kind: what it is read as.
    path: where the table is in the file, for error messages.
    given: fields of ``kind`` that are not keys of the table.

    >>> class Model(ConfigTable, frozen=True):
    ...     name: str
    ...     retries: Count = 2
    >>> read_table({"retries": 3}, Model, "models.small", name="small")
    Model(name='small', retries=3)
    >>> read_table({"retires": 3}, Model, "models.small", name="small")
    Traceback (most recent call last):
    ...
    bpac.errors.SettingsError: models.small.retires: unknown key, did you mean retries? Known keys: retries
    """
    known = {field.encode_name: field for field in fields(kind) if field.name not in given}
    table = as_table(values, path)
    check_keys(table, known, path)
    for key, field in known.items():
        if field.required and key not in table:
            raise SettingsError(f"{path}.{key} is missing: add it")
    try:
        return convert({**table, **given}, kind, dec_hook=_read_custom)
    except ValidationError as error:
        raise SettingsError(_explained(str(error), table, known, path)) from error


def as_table(values: object, path: str) -> Mapping[str, Any]:
    """The values, if they are a table."""
    if not isinstance(values, Mapping):
        raise SettingsError(f"{path}: expected a table, got {values!r}")
    return values


def check_keys(table: Mapping[str, object], known: Iterable[str], path: str) -> None:
    """Raise ``SettingsError`` if a table has a key that is not known, with the key that was probably meant."""
    names = sorted(known)
    for key in table:
        if key not in names:
            close = get_close_matches(key, names, n=1)
            meant = f", did you mean {close[0]}? Known" if close else "; known"
            where = f"{path}.{key}" if path else key
            raise SettingsError(f"{where}: unknown key{meant} keys: {', '.join(names) or 'none'}")


def _read_custom(kind: Any, value: object) -> Any:
    """A value of a type of our own, which reads itself; a ``ValueError`` gets its path from msgspec."""
    return kind.read(value)


_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
_PLACE = re.compile(r"\.(\w+)|\[(\d+)\]")


def _explained(said: str, table: Mapping[str, Any], known: Mapping[str, FieldInfo], path: str) -> str:
    """What msgspec says of a mistake, in plain words, with the value and what may stand there instead."""
    text, found, place = said.rpartition(" - at `$")
    if not found:  # said by __post_init__, and of a field if it begins with the field's name
        name = re.match(r"\w*", said)
        return f"{path}.{said}" if name and name[0] in known else f"{path}: {said}"
    value: Any = table
    steps = _PLACE.findall(place)
    for name, index in steps:
        value = value[name] if name else value[int(index)]
    where = path + place.rstrip("`")
    if choices := _choices(inspect.type_info(known[steps[0][0]].type)):
        return f"{where}: expected one of {', '.join(choices)}; got {value!r}"
    if not text.startswith("Expected"):
        return f"{where}: {text}"
    wanted = re.sub(r"`([^`]*)`", lambda match: _in_words(match[1]), text.partition(", got ")[0])
    return f"{where}: {wanted[0].lower()}{wanted[1:]}, got {value!r}"


def _in_words(kinds: str) -> str:
    return " or ".join(_WORDS.get(kind, kind) for kind in kinds.split(" | "))


def _choices(info: inspect.Type) -> list[str]:
    """The words that a field, or an item of its list, may be; none if it may be anything else."""
    match info:
        case inspect.LiteralType(values=values):
            return [str(value) for value in values]
        case inspect.EnumType(cls=cls):
            return [str(member.value) for member in cls]
        case inspect.UnionType(types=types):
            return [choice for kind in types for choice in _choices(kind)]
        case inspect.CollectionType(item_type=item):
            return _choices(item)
    return []
