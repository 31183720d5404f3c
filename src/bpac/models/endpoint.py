"""The endpoints of model servers: fast where this version of aiohttp allows it, on its public API elsewhere."""

from collections.abc import Mapping

from bpac.models.connections import Endpoint, Session, SessionEndpoint
from bpac.models.via import DIRECTLY, Via

try:
    from bpac.models.direct_endpoint import DirectEndpoint, is_supported
except ImportError:  # aiohttp has moved or removed a name that is not part of its public API
    DIRECT = False
else:
    DIRECT = is_supported()


def new_endpoint(session: Session, url: str, headers: Mapping[str, str], way: Via = DIRECTLY) -> Endpoint:
    """An endpoint for many requests to one URL.

    Parameters
    ----------
    session: the pool of connections.
    url: the URL.
    headers: sent with every body.
    way: how the server is reached (default: directly).
    """
    if DIRECT and way.proxy is None:  # to a proxy a request is written differently
        return DirectEndpoint(session, url, headers, way.tls)
    return SessionEndpoint(session, url, headers, way)
