"""Failed attempts: each is counted by its kind, and becomes the error that its caller gets."""

from typing import NoReturn

from bpac.errors import AnswerError, Unavailable
from bpac.gateway.chat.upstreams.upstream_errors import Busy, CredentialsRefused, UpstreamRefused, json_object
from bpac.gateway.telemetry.failures.upstream_failures import CREDENTIALS, UpstreamRecord, fields_named
from bpac.models.api import ModelApi
from bpac.models.connections import HttpResponse
from bpac.models.reading import TooLong, TooSlow, read_start
from bpac.models.retrying import LATER, Failed, requested_wait
from bpac.wire.translating import ReportedError

# Bytes of an error response that are read.
LONGEST_ERROR = 2**20


class FailedAttempts:
    """Counts the failed attempts of one model, and finds the error of each.

    Parameters
    ----------
    server: the model and its server, as errors name them.
    record: where they are counted.
    api: the API of the model, in which its errors are read.
    timeout: seconds that an answer may take.
    """

    __slots__ = ("_api", "_record", "_server", "_timeout")

    def __init__(self, server: str, record: UpstreamRecord, api: ModelApi, timeout: float) -> None:
        self._server = server
        self._record = record
        self._api = api
        self._timeout = timeout

    async def refuse(self, response: HttpResponse) -> NoReturn:
        """Raise the error of a response whose status is not that of an answer."""
        status, data = response.status, await read_start(response.content, LONGEST_ERROR)
        if self._api.translation is not None:
            data = self._api.translation.read_error(data)
        retry_after = response.headers.get("Retry-After")
        if 300 <= status < 400:
            self.count("elsewhere", "it redirects to another address", status)
            raise Unavailable(f"{self._server} is elsewhere (status {status}): correct its base_url", status)
        if status in CREDENTIALS:
            self.count("credentials", "it does not accept the gateway's credentials", status)
            raise CredentialsRefused(
                f"{self._server} does not accept the gateway's credentials (status {status})", status
            )
        said, fields = f"{self._server} refused with status {status}", fields_named(data)
        refusal = UpstreamRefused(said, status, json_object(data), retry_after, fields)
        if status < 500 and status not in LATER:
            self.count("refused", "it refused the request", status, fields)
            raise refusal
        self.count("busy", "it failed" if status >= 500 else "it is busy", status)
        busy = Busy(f"status {status}", status, requested_wait(retry_after))
        busy.refusal = refusal
        raise busy

    def error_of(self, error: Exception) -> Failed | Unavailable | UpstreamRefused:
        """What a failed attempt raises, after it was counted by its kind."""
        if isinstance(error, ReportedError):
            if not error.refused:
                self.count("busy", "it reports an error within its response")
                return Failed("the server reports an error")
            fields = fields_named(error.body())
            self.count("refused", "it refused the request within its response", 400, fields)
            return UpstreamRefused(f"{self._server} refused the request", 400, error.body(), None, fields)
        if isinstance(error, TooLong):  # another attempt would be as long
            self.count("too_long", str(error))
            return Unavailable(f"{self._server}: {error}")
        if isinstance(error, TooSlow):
            self.count("timeout", "it does not end its stream")
            return Unavailable(f"{self._server} does not end its stream")
        if isinstance(error, TimeoutError):
            self.count("timeout", f"no answer within {self._timeout:g} s")
            return Failed("no answer in time")
        if isinstance(error, AnswerError):
            self.count("unusable", "its response is not a chat completion")
        else:
            self.count("connection", f"the connection failed ({type(error).__name__})")
        # What the server sent is not quoted: it may hold an answer, and errors are logged.
        return Failed(type(error).__name__)

    def count(self, kind: str, text: str, status: int | None = None, fields: tuple[str, ...] = ()) -> None:
        """Count a failed attempt.

        Parameters
        ----------
        kind: of the failure, as in metrics.
        text: what the server did.
        status: of its response (default: none).
        fields: the request fields that it named (default: none).
        """
        said = f"{self._server}: {text}" if status is None else f"{self._server}: {text} (status {status})"
        self._record.failed(kind, status, said, fields)
