"""Protection of a gateway without keys against web pages that are open in a browser on the same machine.

Any web page can make the browser send requests to the local machine. Two checks stop it from using an open gateway.
The name in ``Host`` must be a name of this machine: a page that points its own DNS name at this machine (DNS rebinding)
sends that name. A request with an ``Origin`` must come from the gateway's own pages. In addition, a ``POST`` request
must be ``application/json``: an HTML form cannot send that, and a script of another site must first send a CORS
preflight request, which the gateway answers for the origins in ``cors_origins`` only.
"""

from collections.abc import Callable, Iterable

from bpac.gateway.http.bad_request import BadRequest

Headers = Iterable[tuple[bytes, bytes]]

_LOOPBACK = (b"localhost", b"127.0.0.1", b"[::1]")
_JSON = b"application/json"


class Origins:
    """Checks the headers of requests to an open gateway.

    Parameters
    ----------
    host: the name or address that the gateway listens on.
    allowed: whether pages of another origin may use the gateway (default: of none).

    >>> Origins("127.0.0.1").check("POST", "/v1/feedback", [(b"host", b"a.example")])
    Traceback (most recent call last):
    ...
    bpac.gateway.http.bad_request.BadRequest: this gateway has no keys and answers to its own name, not to 'a.example'
    """

    def __init__(self, host: str, allowed: Callable[[bytes], bool] = lambda _: False) -> None:
        self._allowed = allowed
        listened = f"[{host}]" if ":" in host else host
        self._names = frozenset((*_LOOPBACK, listened.lower().encode()))

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Raise ``BadRequest`` if a request may come from a web page of another site."""
        host, origin, kind = b"", None, b""
        for name, value in headers:
            if name == b"host":
                # With two Host headers, one could be checked here and the other used elsewhere.
                host = value if not host else b"several"
            elif name == b"origin":
                origin = value
            elif name == b"content-type":
                kind = value
        if _name(host) not in self._names:
            shown = host.decode("latin-1")[:100]
            message = f"this gateway has no keys and answers to its own name, not to {shown!r}"
            raise BadRequest(message, 403, code="host_not_allowed")
        own = b"http://" + host.lower()
        if origin is not None and origin.lower() != own and not (path.startswith("/v1/") and self._allowed(origin)):
            raise BadRequest("web pages of other sites may not use this gateway", 403, code="origin_not_allowed")
        if method == "POST" and path.startswith("/v1/") and kind.partition(b";")[0].strip().lower() != _JSON:
            raise BadRequest("send JSON, with  Content-Type: application/json", 415, code="not_json")


def _name(host: bytes) -> bytes:
    """The name in a ``Host`` header, without the port."""
    name, colon, port = host.lower().rpartition(b":")
    return name if colon and port.isdigit() else host.lower()
