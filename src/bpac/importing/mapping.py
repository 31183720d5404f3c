"""``--map NAME=COLUMN``: which column or field of a record holds a value, whatever the format of the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpac.errors import InputError
from bpac.importing.call import LoggedCall, Record
from bpac.importing.fields import decoded, messages_of, text_of
from bpac.importing.formats.rows import FEATURE, GIVEN, NAMES

# What can be mapped; feature_NAME, too.
TARGETS = (*GIVEN, *NAMES)
# Values that only rows with any column names have; a mapping of one of them says that the file is such a file.
OF_ROWS = frozenset({"draft", "expert", "answer", "loss", "draft_correct", "logprobs", "tokens"})


@dataclass(frozen=True, slots=True)
class Mapped:
    """The columns that hold values, by the name of the value.

    Parameters
    ----------
    columns: the columns; dots lead into objects, as in ``metadata.confidence``.
    """

    columns: Mapping[str, str]

    @classmethod
    def parse(cls, options: Sequence[str]) -> "Mapped":
        """Read ``NAME=COLUMN`` options.

        >>> Mapped.parse(["uncertainty=conf"]).columns
        {'uncertainty': 'conf'}
        """
        columns: dict[str, str] = {}
        for option in options:
            name, equals, column = option.partition("=")
            if not equals or not column or (name not in TARGETS and not name.startswith(FEATURE)):
                raise InputError(
                    f"--map {option}: give NAME=COLUMN with NAME one of {', '.join(TARGETS)} or {FEATURE}NAME"
                )
            if name in columns:
                raise InputError(f"--map {name}=… is given twice")
            columns[name] = column
        return cls(columns)

    @property
    def only_rows(self) -> bool:
        """Whether the mapping says that the file has a row per question or per call, with any column names."""
        return bool(OF_ROWS & set(self.columns))

    def renamed(self, record: Record) -> Record:
        """A record whose mapped columns have their usual names, for files with any column names."""
        values = {name: looked_up(record, column) for name, column in self.columns.items()}
        hidden = {first for name in self.columns for first in (*NAMES.get(name, ()), *GIVEN.get(name, ()))}
        return {key: value for key, value in record.items() if key not in hidden} | values

    def apply(self, call: LoggedCall, record: Record) -> None:
        """Give a call the values of its record that the mapping names."""
        fields = record if call.source is None else call.source
        for name, column in self.columns.items():
            value = looked_up(fields, column)
            if value in (None, ""):
                continue
            if name == "id":
                call.trace = text_of(value)
            elif name == "prompt":
                call.messages = messages_of(value)
            elif name == "model":
                call.models = (text_of(value),)
            elif name == "role":
                call.role = text_of(value).lower()
            elif name in GIVEN or name.startswith(FEATURE):
                call.given[name] = value


def looked_up(record: Record, column: str) -> Any:
    """The value of a column, or of a field within objects; none if it is missing.

    >>> looked_up({"metadata": '{"score": 0.2}'}, "metadata.score"), looked_up({"a.b": 1}, "a.b")
    (0.2, 1)
    """
    if column in record:
        return record[column]
    value: Any = record
    for part in column.split("."):
        value = decoded(value)
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping):
            value = value.get(part)
        else:
            return None
    return value
