"""Where a gateway archives the old entries of its games."""

import os

from bpac.errors import SettingsError
from bpac.gateway.config.toml_tables import ConfigTable, Count


class ArchiveSettings(ConfigTable, frozen=True):
    """Settings of archives, in the table ``[gateway.archive]``.

    Parameters
    ----------
    folder: directory that Parquet files are written to. Every gateway needs it, because any of them may fold a game.
    keep: number of latest entries of each game that stay in Redis at least.
    """

    folder: str
    keep: Count = 100_000

    def __post_init__(self) -> None:
        if not self.folder:
            raise SettingsError("folder must name a directory")


def check_archive(settings: ArchiveSettings | None) -> None:
    """Raise ``SettingsError`` unless files can be written to the folder, and ``MissingExtra`` without pyarrow."""
    if settings is None:
        return
    from bpac.stores.line_files import import_pyarrow  # noqa: PLC0415  # pyarrow is optional

    import_pyarrow()
    try:
        os.makedirs(settings.folder, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"gateway.archive.folder: {settings.folder} cannot be made ({error.strerror})") from error
    if not os.access(settings.folder, os.W_OK | os.X_OK):
        raise SettingsError(f"gateway.archive.folder: {settings.folder} cannot be written to")
