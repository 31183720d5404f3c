"""A model behind the gateway: on one server (``Upstream``), or with several deployments (``Deployments``)."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol

from bpac.errors import Unavailable
from bpac.wire.completions import Completion
from bpac.wire.stream import StreamEvent
from bpac.wire.usage import Meter

# Raises ``AnswerError`` if an answer is not what was asked for.
Check = Callable[[Completion], object]


def deployment_note(role: str, deployment: str) -> dict[str, str]:
    """What the note of a round says about the deployment that answered; nothing if the model has only one.

    Parameters
    ----------
    role: ``draft`` or ``expert``.
    deployment: its name; empty if there is only one.
    """
    return {f"{role}_deployment": deployment} if deployment else {}


class ModelCall(Protocol):
    """A model for one request."""

    @property
    def deployment(self) -> str:
        """The name of the deployment that answered; empty before, and if the model has only one."""

    async def whole(
        self, body: Mapping[str, Any], meter: Meter, *, logprobs_only: bool = False, check: Check | None = None
    ) -> Completion:
        """A whole answer, as ``Upstream.whole``."""

    def stream(
        self, body: Mapping[str, Any], meter: Meter, *, within: float
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """The events of an answer, as ``Upstream.stream``."""

    def unusable_stream(self) -> Unavailable:
        """Record that a stream ended without being an answer, and return the error of it."""

    def given_up(self, seconds: float) -> None:
        """Record that an answer did not come within so many seconds and is no longer awaited."""


class Model(Protocol):
    """A model."""

    @property
    def down(self) -> Unavailable | None:
        """The error of a request, if the model is known to be down; none if requests are sent to it."""

    def for_request(self) -> ModelCall:
        """The model for one request."""
