"""The gateway as an ASGI application, assembled from its endpoints."""

import sys

from bpac.errors import BpacError
from bpac.gateway.auth.authentication import Authentication, address_of
from bpac.gateway.auth.cors import Cors
from bpac.gateway.auth.failed_logins import FailedLogins
from bpac.gateway.auth.keys import ApiKeys
from bpac.gateway.auth.origins import Origins
from bpac.gateway.config.file import Config
from bpac.gateway.http.asgi import Message, Receive, Send, send_error
from bpac.gateway.http.bad_request import BadRequest
from bpac.gateway.http.doors.error_formats import CHAT_ERRORS
from bpac.gateway.http.endpoints.endpoints import other_endpoints
from bpac.gateway.http.endpoints.posted_endpoints import posted_endpoints
from bpac.gateway.http.exchange import Exchange
from bpac.gateway.service import Service


class Gateway:
    """The application: the endpoints for prompts as plain ASGI callables, and Starlette for the other endpoints.

    Parameters
    ----------
    service: answers requests; it starts and stops with the application.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._logins = FailedLogins()
        self._open_endpoints()

    def _open_endpoints(self) -> None:
        service, config = self.service, self.service.config
        keys = ApiKeys(config.api_keys, config.keys, service.store.secret)
        authentication = Authentication(keys, self._logins)
        self._cors = Cors(config.cors_origins)
        self._origins = Origins(config.host, self._cors.allows) if config.open else None
        self._root_path = config.root_path
        self._posted = posted_endpoints(service, authentication)
        self._others = other_endpoints(service, authentication)

    async def reload(self, config: Config) -> None:
        """Answer new requests with another configuration; if this raises, nothing has changed.

        Parameters
        ----------
        config: the new configuration.
        """
        await self.service.reload(config)
        self._open_endpoints()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or start and stop with the server."""
        if scope["type"] == "lifespan":
            send = _in_one_line(send)
        elif scope["type"] == "http":
            if self._root_path and scope["path"].startswith(f"{self._root_path}/"):
                scope = {**scope, "path": scope["path"][len(self._root_path) :]}
            send = self._cors.answering(scope, Exchange(scope).answering(send))
            endpoint = self._posted.get(scope["path"])
            if self._origins is not None:
                try:
                    self._origins.check(scope["method"], scope["path"], scope["headers"])
                except BadRequest as error:
                    self.service.rejections.count_error(error, address_of(scope))
                    errors = CHAT_ERRORS if endpoint is None else endpoint.errors
                    await send_error(send, errors.response(error))
                    return
            if self._cors.is_preflight(scope):
                await self._cors.answer_preflight(scope, send)
                return
            if endpoint is not None:
                await endpoint(scope, receive, send)
                return
        await self._others(scope, receive, send)


def _in_one_line(send: Send) -> Send:
    """Shorten the traceback of a failed start to what an error of ours says, such as that of a damaged store."""

    async def shortened(message: Message) -> None:
        error = sys.exc_info()[1]  # a failure is sent where it was caught
        await send({**message, "message": str(error)} if isinstance(error, BpacError) else message)

    return shortened
