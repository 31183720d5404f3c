"""Responses to callers with a budget: the tokens of the answer are charged as it is sent."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from bpac.errors import ModelError
from bpac.gateway.budgets.metering import StreamMeter, total_tokens
from bpac.gateway.chat.response import ChatResponse


class RequestCharge(Protocol):
    """One request that was admitted.

    Parameters
    ----------
    estimate: the tokens that were charged in advance.
    """

    estimate: int

    def settle(self, tokens: int) -> None:
        """Charge the tokens that were used instead of the estimate."""

    def refund(self) -> None:
        """The gateway did not answer: charge nothing."""


def metered(response: ChatResponse, charge: RequestCharge, *, hide_usage: bool) -> ChatResponse:
    """The same response, of which the tokens are charged: all of a whole answer, and of a stream what was sent.

    Parameters
    ----------
    response: the response.
    charge: the request.
    hide_usage: whether the counts of a stream are taken out of it.
    """
    events = response.events
    if events is None:
        reported = total_tokens(response.body)
        if reported is not None:
            charge.settle(reported)
        return response
    meter, prompt = StreamMeter(hide_usage=hide_usage), charge.estimate

    async def counted() -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(events):
                async for part in events:
                    if shown := meter.passed(part):
                        yield shown
        finally:
            # Also if the caller disconnects: what was sent was used.
            charge.settle(meter.tokens if meter.reported else prompt + meter.tokens)

    return replace(response, events=counted())


def refund(charge: RequestCharge | None, error: Exception) -> None:
    """Give back what was charged for a request that ended in an error before its response.

    Parameters
    ----------
    charge: the request; none if its caller has no budget.
    error: the error. If a model failed, the request counts, because the model was asked.
    """
    if charge is not None and isinstance(error, ModelError):
        charge.settle(0)
    elif charge is not None:
        charge.refund()
