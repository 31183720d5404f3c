"""Every error bpac raises, as one tree.

- ``BpacError``
    - ``InputError``: a value handed in is not what it must be (also a ``ValueError``)
        - ``SettingsError``: a setting of a router, policy or schedule
        - ``TableError``: a cell, column or line of a table
    - ``ObservationError``: an outcome that fits no open round
        - ``UnknownStep``: the step was never decided here
        - ``NotAudited``: the draft was kept, so there is nothing to observe
        - ``AlreadyResolved``: the round has its outcome already
    - ``JournalError``: entries that no router can have written
        - ``TornLine``: the last line was cut off while it was being written
    - ``SnapshotError``: a snapshot that is damaged or differs from the journal
    - ``MissingExtra``: an optional dependency is not installed

Whoever raises one of these has changed nothing before.
"""


class BpacError(Exception):
    """The root of the tree."""


class InputError(BpacError, ValueError):
    """A value handed in is not what it must be."""


class SettingsError(InputError):
    """A setting of a router, policy or schedule makes no sense."""


class TableError(InputError):
    """A cell, column or line of a table cannot be used."""


class ObservationError(BpacError):
    """An outcome fits no open round."""


class UnknownStep(ObservationError):
    """The step was never decided by this router."""


class NotAudited(ObservationError):
    """The expert was not called in that step, so it has no outcome."""


class AlreadyResolved(ObservationError):
    """The round has its outcome already; a second one is refused."""


class JournalError(BpacError):
    """The entries are not what a router writes."""


class TornLine(JournalError):
    """The last line of a journal was cut off while it was being written."""


class SnapshotError(BpacError):
    """A snapshot is damaged or does not agree with the journal."""


class MissingExtra(BpacError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}: install it with  pip install 'bpac[{extra}]'")
