"""Accounts of rounds: the events that every account follows, and accounts in which their order does not matter."""

from abc import ABC, abstractmethod
from typing import Protocol, TypeVar


class Round(Protocol):
    """What the mathematics needs to know of a decision; ``bpac.Decision`` has it all."""

    @property
    def step(self) -> int:
        """Number of the round in its route (t)."""

    @property
    def uncertainty(self) -> float:
        """Score of the draft (U)."""

    @property
    def uncertainties(self) -> tuple[float, ...]:
        """All scores of the draft, where a router has several."""

    @property
    def threshold(self) -> float:
        """The threshold the decision was made with."""

    @property
    def propensity(self) -> float:
        """Probability with which the expert was called (π)."""

    @property
    def least_propensity(self) -> float:
        """The least propensity any query could have had in this round (p)."""

    @property
    def call_expert(self) -> bool:
        """Whether the expert was called (ξ)."""


RoundT_contra = TypeVar("RoundT_contra", bound=Round, contravariant=True)


class Account(Protocol[RoundT_contra]):
    """Something that follows the rounds of a route.

    Every round is ``decided`` once. An audited round then sees ``resolve`` if its loss is known
    before the next decision; otherwise ``charge`` and, later, ``refund`` or ``forfeit``. A round in
    which the expert refused is seen as another one (``replace``).
    """

    def decided(self, decision: RoundT_contra) -> None:
        """A decision was made; if the expert is called, its outcome is still to come."""

    def resolve(self, decision: RoundT_contra, loss: float) -> None:
        """The loss of a round that was not charged is known."""

    def charge(self, decision: RoundT_contra) -> None:
        """The loss of the round is not known in time."""

    def refund(self, decision: RoundT_contra, loss: float) -> None:
        """The loss of a charged round is known later."""

    def forfeit(self, decision: RoundT_contra) -> None:
        """The loss of a charged round is given up."""

    def replace(self, decision: RoundT_contra, instead: RoundT_contra, loss: float, *, charged: bool) -> None:
        """The round counts as another one with that loss.

        Parameters
        ----------
        decision: the round as it was decided.
        instead: the round as it counts.
        loss: the loss of the latter.
        charged: whether the round was charged.
        """


class Ledger(ABC):
    """An account of whole-number sums: losses are added and taken out, in any order.

    A charge is a loss of 1 (MATH section 5: *charge, then refund*), the largest there is. Taking it out leaves
    the sums as if it had never been added.
    """

    __slots__ = ()

    @abstractmethod
    def add(self, decision: Round, loss: float) -> None:
        """Book a loss above 0."""

    @abstractmethod
    def remove(self, decision: Round, loss: float) -> None:
        """Take a booked loss out again."""

    def resolve(self, decision: Round, loss: float) -> None:
        """Book the loss of a round that was not charged."""
        if loss > 0.0:
            self.add(decision, loss)

    def charge(self, decision: Round) -> None:
        """Book a loss of 1."""
        self.add(decision, 1.0)

    def refund(self, decision: Round, loss: float) -> None:
        """Replace the charge by the true loss."""
        # In this order: between the two, the sums are too large and never too small. Otherwise a threshold that
        # latches could latch at a moment at which the loss is not counted at all.
        self.resolve(decision, loss)
        self.remove(decision, 1.0)

    def forfeit(self, decision: Round) -> None:
        """Leave the charge where it is."""

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Book the loss of the other round instead of the charge."""
        self.resolve(instead, loss)  # first, as in ``refund``
        if charged:
            self.remove(decision, 1.0)
