"""The fields of a caller's request, checked one by one: an error names the place of the mistake."""

from collections.abc import Iterator, Mapping
from typing import Any

from bpac.errors import RequestError

# The code of what is asked for and cannot be expressed as a chat completion.
UNSUPPORTED = "unsupported"


class Fields:
    """An object within a request, and its place there.

    Null counts as missing everywhere: clients write fields that they leave out in both ways.

    Parameters
    ----------
    values: the object.
    place: where it stands in the request; empty for the request itself.

    >>> Fields({"role": 7}, "input[2]").text("role")
    Traceback (most recent call last):
    ...
    bpac.errors.RequestError: input[2].role must be a text
    """

    __slots__ = ("place", "values")

    def __init__(self, values: Mapping[str, Any], place: str = "") -> None:
        self.values = values
        self.place = place

    def at(self, name: str) -> str:
        """The place of a field in the request."""
        return f"{self.place}.{name}" if self.place else name

    def wrong(self, name: str, what: str, code: str = "invalid_value") -> RequestError:
        """The error of a field; ``what`` follows its place in the message."""
        place = self.at(name) if name else self.place
        return RequestError(f"{place} {what}", place, code)

    def unsupported(self, name: str, why: str) -> RequestError:
        """The error of something that cannot be expressed as a chat completion."""
        return self.wrong(name, why, UNSUPPORTED)

    def get(self, name: str) -> Any:
        """A field of any kind; none if it is missing."""
        return self.values.get(name)

    def needed(self, name: str) -> Any:
        """A field of any kind that must be there."""
        if (value := self.values.get(name)) is None:
            raise self.wrong(name, "is missing", "missing")
        return value

    def text(self, name: str) -> str | None:
        """A text; none if it is missing."""
        text: str | None = self._typed(name, str, "a text")
        return text

    def needed_text(self, name: str) -> str:
        """A text that must be there."""
        self.needed(name)
        text: str = self._typed(name, str, "a text")
        return text

    def flag(self, name: str) -> bool | None:
        """True or false; none if it is missing."""
        flag: bool | None = self._typed(name, bool, "true or false")
        return flag

    def whole(self, name: str, least: int) -> int | None:
        """A whole number of at least ``least``; none if it is missing."""
        value = self.values.get(name)
        if type(value) is float and value.is_integer():  # to JSON 1.0 is a whole number
            value = int(value)
        if value is not None and (type(value) is not int or value < least):
            raise self.wrong(name, f"must be a whole number of at least {least}")
        return value

    def one_of(self, name: str, *choices: str) -> str:
        """A text that must be there and be one of some."""
        if (value := self.needed_text(name)) not in choices:
            raise self.wrong(name, f"must be {' or '.join(choices)}")
        return value

    def object(self, name: str) -> "Fields | None":
        """An object; none if it is missing."""
        value = self._typed(name, dict, "an object")
        return None if value is None else Fields(value, self.at(name))

    def needed_object(self, name: str) -> "Fields":
        """An object that must be there."""
        self.needed(name)
        return Fields(self._typed(name, dict, "an object"), self.at(name))

    def objects(self, name: str) -> Iterator["Fields"]:
        """The objects in a list; none if it is missing."""
        for number, value in enumerate(self._typed(name, list, "a list") or ()):
            place = f"{self.at(name)}[{number}]"
            if not isinstance(value, dict):
                raise RequestError(f"{place} must be an object", place, "invalid_type")
            yield Fields(value, place)

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty if it is missing."""
        values: list[Any] = self._typed(name, list, "a list") or []
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(name, "must be a list of texts", "invalid_type")
        return values

    def others(self, read: frozenset[str]) -> dict[str, Any]:
        """The fields that are passed on as they are: all except those that are read."""
        return {name: value for name, value in self.values.items() if name not in read}

    def _typed(self, name: str, kind: type, what: str) -> Any:
        value = self.values.get(name)
        if value is not None and type(value) is not kind:
            raise self.wrong(name, f"must be {what}", "invalid_type")
        return value


def refuse_several_answers(fields: Fields) -> None:
    """Refuse what chat completions have and a reply with one answer in text has no room for."""
    if fields.get("n") not in (None, 1):
        raise fields.unsupported("n", "must be 1: this API has one answer per request; use /v1/chat/completions")
    if fields.get("modalities") not in (None, ["text"]) or fields.get("audio") is not None:
        name = "modalities" if fields.get("audio") is None else "audio"
        raise fields.unsupported(name, "cannot be used here: answers are text; use /v1/chat/completions")
