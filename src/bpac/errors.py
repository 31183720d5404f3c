"""Every error bpac raises, as one tree.

- ``BpacError``
    - ``InputError``: an argument is out of range or of the wrong kind (also a ``ValueError``)
        - ``SettingsError``: a setting of a router, policy or schedule
        - ``TableError``: a cell, column or line of a table
        - ``RequestError``: a caller's request in another API's format cannot be read, or not be expressed as a chat
    - ``ObservationError``: an outcome that fits no open round
        - ``UnknownStep``: the step was never decided here
        - ``NotAudited``: the draft was kept, so there is nothing to observe
        - ``AlreadyResolved``: the round already has an outcome
        - ``UnknownTicket``: the ticket was not given out here, or is already done
        - ``StaleProposal``: the entry is not the latest proposal of the router
    - ``Interrupted``: a call was interrupted in the middle of a change, so the router may not go on
    - ``JournalError``: entries that no router can have written
        - ``TornLine``: the last line was cut off while it was being written
    - ``CheckFailed``: a policy fails a check that every policy must pass (``bpac.routing.checks``)
    - ``SnapshotError``: a snapshot that is damaged or differs from the journal
    - ``AnswerError``: what a model answered cannot be used
        - ``NoScore``: a draft lacks what its score is computed from
            - ``NoLogprobs``: the server gave no usable log-probabilities
        - ``NoVerdict``: a judge gave no usable mark
        - ``TooLong`` (``bpac.models.reading``): it is longer than allowed
        - ``TooSlow`` (``bpac.models.reading``): it takes longer than allowed
        - ``ReportedError`` (``bpac.wire.translating``): a server reports an error within a response that began well
    - ``ModelError``: a model server gave no answer
        - ``Refused``: it rejected the request (a status 4xx); a retry would not help
            - ``UpstreamRefused`` (``bpac.gateway.chat.upstreams.upstream_errors``): its caller gets the server's error
        - ``Unavailable``: it failed, even after retries
            - ``CredentialsRefused`` (``bpac.gateway.chat.upstreams.upstream_errors``): it refuses the gateway's own key
    - ``StoreError``: a store cannot be used, or failed and accepts no more entries
        - ``StoreInUse``: another gateway writes to it
        - ``RedisGone`` (``bpac.stores.redis.server.connecting``): Redis cannot be reached, or did not do its task
            - ``WrongType`` (``bpac.stores.redis.server.connecting``): somebody has replaced a key by something else
        - ``NoRoom`` (``bpac.stores.redis.store``): a route has as many games as it may have
        - ``EntriesLost`` (``bpac.stores.redis.journal``): a journal in Redis lost what was acknowledged
        - ``NotCut`` (``bpac.stores.redis.archives``): an archive was not needed after all, and nothing was cut
        - ``NoTicket`` (``bpac.gateway.games.desk``): the expert answers, because no ticket can be had
        - ``OwnerLost`` (``bpac.gateway.workers.front.owner_errors``): the process that owns the journals is away
            - ``OwnerLate`` (``bpac.gateway.workers.front.owner_errors``): it did not answer in time
        - ``ConfigurationChanged`` (``bpac.gateway.workers.front.owner_errors``): a reload has ended the game
    - ``GameNotOpen`` (``bpac.gateway.workers.owner.front_games``): a front names a game that is not open
    - ``NotExpressible`` (``bpac.wire.translating``): a request that the API of a model cannot express
    - ``BadRequest`` (``bpac.gateway.http.bad_request``): a request that the gateway cannot answer
    - ``GatewayError``: a gateway gave no decision (``bpac.RemoteRouter``)
        - ``GatewayRefused``: it rejected the request; a retry would not help
        - ``GatewayGone``: it cannot be reached, or did not answer in time, even after retries
    - ``MissingExtra``: an optional dependency is not installed

A call that raises one of these has changed nothing.
"""


class BpacError(Exception):
    """The root of the tree."""


class InputError(BpacError, ValueError):
    """An argument is out of range or of the wrong kind."""


class SettingsError(InputError):
    """A setting of a router, policy or schedule is out of range, of the wrong kind, or contradicts another."""


class TableError(InputError):
    """A cell, column or line of a table cannot be used."""


class RequestError(InputError):
    """A request in the format of another API cannot be read, or cannot be expressed as a chat completion.

    Parameters
    ----------
    message: what is wrong and what to do.
    param: the place in the request, such as ``input[2].role``.
    code: a word for programs: ``unsupported`` if a chat completion cannot express what is asked.
    """

    def __init__(self, message: str, param: str, code: str = "invalid_value") -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class ObservationError(BpacError):
    """An outcome fits no open round."""


class UnknownStep(ObservationError):
    """The step was never decided by this router."""


class NotAudited(ObservationError):
    """The expert was not called in that step, so it has no outcome."""


class AlreadyResolved(ObservationError):
    """The round already has an outcome."""


class UnknownTicket(ObservationError):
    """The ticket was not given out by this router since it started, or is already done."""


class StaleProposal(ObservationError):
    """The entry is not the latest proposal of the router: it was never proposed, or something else happened since."""


class Interrupted(BpacError):
    """A call was interrupted in the middle of a change, or made from the router's own journal callback."""


class JournalError(BpacError):
    """The entries are not what a router writes."""


class TornLine(JournalError):
    """The last line of a journal was cut off while it was being written."""


class SnapshotError(BpacError):
    """A snapshot is damaged or does not agree with the journal."""


class CheckFailed(BpacError):
    """A policy fails a check that every policy must pass."""


class AnswerError(BpacError):
    """What a model answered cannot be used."""


class NoScore(AnswerError):
    """A draft lacks what its score is computed from."""


class NoLogprobs(NoScore):
    """A score needs log-probabilities that the server did not give."""


class NoVerdict(AnswerError):
    """A judge gave no usable mark."""


class ModelError(BpacError):
    """A model server gave no answer.

    Parameters
    ----------
    message: the model and its server, and what went wrong.
    status: the HTTP status of the last reply; none if there was no reply.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Refused(ModelError):
    """The server rejected the request (a status 4xx); a retry would not help."""


class Unavailable(ModelError):
    """The server failed or did not answer in time, even after retries."""


class StoreError(BpacError):
    """A store cannot be used, or failed and accepts no more entries.

    Parameters
    ----------
    message: the file and what went wrong.
    cause: why, without the name of the file (default: empty, not known).
    remedy: what to do (default: empty).
    """

    def __init__(self, message: str = "", *, cause: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.remedy = remedy


class StoreInUse(StoreError):
    """Another gateway writes to this store."""


class GatewayError(BpacError):
    """A gateway gave no decision, or did not take a report."""


class GatewayRefused(GatewayError):
    """The gateway rejected the request; a retry would not help.

    Parameters
    ----------
    message: what the gateway said.
    status: the HTTP status.
    code: the gateway's word for it; empty if it has none.
    """

    def __init__(self, message: str, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class GatewayGone(GatewayError):
    """The gateway cannot be reached, or did not answer in time, even after retries."""


class MissingExtra(BpacError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}: install it with  pip install 'bpac[{extra}]'", name=package)
