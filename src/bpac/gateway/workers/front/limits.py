"""Limits that hold over all fronts: numbers are divided among them, and the owner counts budgets."""

import msgspec

from bpac.gateway.config.file import Config
from bpac.gateway.workers.front.owner_link import OwnerLink


class RemoteCharge:
    """A request that the owner has counted against a budget.

    Parameters
    ----------
    link: the connection to the owner.
    number: the number of the charge.
    estimate: the tokens that were charged in advance.
    """

    __slots__ = ("_link", "_number", "estimate")

    def __init__(self, link: OwnerLink, number: int, estimate: int) -> None:
        self._link = link
        self._number = number
        self.estimate = estimate

    def settle(self, tokens: int) -> None:
        """Charge the tokens that were used instead of the estimate."""
        self.estimate = tokens
        self._link.tell("settle", self._number, tokens)

    def refund(self) -> None:
        """The gateway did not answer: charge nothing."""
        self._link.tell("refund", self._number)


def share(config: Config, fronts: int) -> Config:
    """The configuration of one of several fronts: limits of numbers are divided."""
    limits = config.limits
    return msgspec.structs.replace(
        config,
        max_in_flight=_part(config.max_in_flight, fronts),
        limits=msgspec.structs.replace(
            limits,
            max_connections=_part(limits.max_connections, fronts),
            max_connections_per_address=_part(limits.max_connections_per_address, fronts),
        ),
    )


def _part(number: int, fronts: int) -> int:
    return -(-number // fronts)
