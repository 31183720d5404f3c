"""Origins of web pages in the configuration."""

from bpac.errors import SettingsError

ANY = "*"


class Origin(str):
    """An origin as browsers send it, such as ``https://app.example.org``, or ``*`` for any.

    >>> Origin.read("https://App.example.org:8443")
    'https://app.example.org:8443'
    """

    __slots__ = ()

    @classmethod
    def read(cls, value: object) -> "Origin":
        """The origin in a setting."""
        text = value.lower() if isinstance(value, str) else ""
        scheme, mark, host = text.partition("://")
        usable = mark and scheme in ("http", "https") and host and not set(host) & set("/?#@*, \t")
        if text != ANY and not usable:
            raise SettingsError(f"expected an origin such as https://app.example.org, without a path, got {value!r}")
        return cls(text)
