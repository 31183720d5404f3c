"""The setting of a file with certificates, which is read when the configuration is."""

from bpac.errors import SettingsError
from bpac.models.via import trusting


class CaFile(str):
    """The name of a file with certificates (PEM)."""

    __slots__ = ()

    @classmethod
    def read(cls, value: object) -> "CaFile":
        """The file in a setting, or ``SettingsError`` if it has no certificates."""
        if not isinstance(value, str) or not value:
            raise SettingsError(f"expected the name of a file, got {value!r}")
        trusting(value)
        return cls(value)
