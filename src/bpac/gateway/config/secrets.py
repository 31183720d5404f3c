"""Values that may hold a secret: keys, and addresses with a password. They do not show it when they are printed."""

from typing import Self

from bpac.errors import SettingsError
from bpac.models.fields import address, redacted, secret


class Secret(str):
    """A secret: its text, or the value of the environment variable ``env:NAME``.

    >>> Secret.read("abc") == "abc", Secret.read("abc")
    (True, '***')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    @classmethod
    def read(cls, value: object) -> Self:
        """The secret that a setting names."""
        return cls(secret(_text(value), "the value"))


class ApiKey(Secret):
    """A key that callers of the gateway send; it is not empty.

    Attributes
    ----------
    variable: the setting ``env:NAME`` that the key comes from; empty if the key itself is in the file.
    """

    variable = ""

    @classmethod
    def read(cls, value: object) -> Self:
        """The key that a setting names."""
        key = super().read(value)
        if isinstance(value, str) and value.startswith("env:"):
            key.variable = value
        if not key.strip():
            raise SettingsError("the key must not be empty: give a key, or env:NAME for an environment variable")
        return key


class Url(str):
    """An address; a name, a password and the values of a query in it are not printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(redacted(self))

    @classmethod
    def read(cls, value: object) -> Self:
        """The address in a setting; whether it can be used is checked when it is opened."""
        return cls(_text(value))


class BaseUrl(Url):
    """The address of a model server, without a slash at its end.

    >>> BaseUrl.read("http://me:secret@127.0.0.1:8001/v1/")
    'http://***@127.0.0.1:8001/v1'
    """

    __slots__ = ()

    @classmethod
    def read(cls, value: object) -> Self:
        """The address in a setting."""
        return cls(address(_text(value), "it"))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"expected a string, got {value!r}")
    return value
