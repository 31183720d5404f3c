"""What a gateway does while the store that it shares with others is gone: ``store_outage`` in ``[gateway]``."""

from typing import Annotated, Literal

from msgspec import Meta

from bpac.gateway.config.toml_tables import ConfigTable


class StoreOutage(ConfigTable, frozen=True):
    """Requests that arrive while Redis is gone are decided on the threshold that was published last.

    Parameters
    ----------
    serve: what is served; there is one choice, which must be made explicitly.
    seconds: for how long after the last reply of Redis; afterwards the expert answers every request.
    file: where drafts that are served meanwhile are counted, on a disk that outlives the process.
    """

    serve: Literal["last-threshold"]
    file: Annotated[str, Meta(min_length=1)]
    seconds: Annotated[float, Meta(gt=0, le=3600)] = 60.0
