"""A decision that a gateway made, as a value."""

from collections.abc import Mapping
from typing import Any, NamedTuple

# Why nothing was decided: the gateway could not be asked, or did not answer.
NO_GATEWAY = "no-gateway"
# What every reply has, and its types.
NEEDS: Mapping[str, type | tuple[type, ...]] = {"decision": (str, type(None)), "call_expert": bool, "serve_draft": bool}


class RemoteDecision(NamedTuple):
    """What a gateway decided for one query.

    Parameters
    ----------
    id: its id, for the loss; none if nothing was decided: then the expert answers, and no loss is reported.
    call_expert: whether the expert is called.
    serve_draft: whether the user gets the draft; with shadow audits also where the expert is called.
    uncertainty: the score that decided; none if nothing was decided, as the following.
    threshold: drafts below it are kept, unless they are audited.
    propensity: the probability with which the expert was called.
    step: number of the query in its game, from 1.
    reason: why nothing was decided; none if something was.
    """

    id: str | None
    call_expert: bool
    serve_draft: bool
    uncertainty: float | None = None
    threshold: float | None = None
    propensity: float | None = None
    step: int | None = None
    reason: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the draft is below the threshold: it may be served if the expert refuses to answer."""
        return self.uncertainty is not None and self.threshold is not None and self.uncertainty < self.threshold

    @classmethod
    def read(cls, reply: Mapping[str, Any]) -> "RemoteDecision":
        """The decision in the reply of a gateway; without the id of a decision no draft is served.

        >>> reply = {"decision": None, "call_expert": True, "serve_draft": False, "reason": "outage"}
        >>> RemoteDecision.read(reply).reason
        'outage'
        """
        if reply["decision"] is None:
            return undecided(str(reply.get("reason")))
        known = {name: reply.get(name) for name in ("uncertainty", "threshold", "propensity", "step", "reason")}
        return cls(reply["decision"], reply["call_expert"], reply["serve_draft"], **known)


def undecided(reason: str) -> RemoteDecision:
    """Nothing was decided, for a reason: the expert answers."""
    return RemoteDecision(None, call_expert=True, serve_draft=False, reason=reason)
