"""Offline calibration as a bettor."""

from typing import Any

from bpac.betting.bounds.fixed_sample import calibrate
from bpac.betting.ledgers.ledger import Round
from bpac.betting.payoff import Terms


class Calibration:
    """Offline PAC: every query goes to the expert until the calibration set is full; then the threshold is fixed."""

    def __init__(self, terms: Terms, alpha: float, size: int, bound: str | None) -> None:
        self._terms = terms
        self._alpha = alpha
        self._size = size
        self._bound = bound
        self._losses: dict[int, list[Any]] = {}  # step: [uncertainty, loss or None]
        self._missing = size
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Take the first rounds into the set."""
        if len(self._losses) < self._size:
            self._losses[decision.step] = [decision.uncertainty, None]

    def resolve(self, decision: Round, loss: float) -> None:
        """Fill in a loss; calibrate with the last one."""
        entry = self._losses.get(decision.step)
        if entry is None:
            return
        entry[1] = loss
        self._missing -= 1
        if not self._missing:
            self._calibrate()

    def charge(self, decision: Round) -> None:
        """Nothing: calibration waits."""

    def refund(self, decision: Round, loss: float) -> None:
        """Nothing was charged."""
        self.resolve(decision, loss)

    def forfeit(self, decision: Round) -> None:
        """A loss that will never be known counts as 1."""
        self.resolve(decision, 1.0)

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Leave the round out: the set is about queries that the expert answers, and takes another one."""
        entry = self._losses.get(decision.step)
        if entry is not None and entry[1] is None:
            del self._losses[decision.step]

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        losses = [[step, *entry] for step, entry in self._losses.items()]
        return {"missing": self._missing, "threshold": self.threshold, "losses": losses}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self._missing, self.threshold = state["missing"], state["threshold"]
        self._losses = {step: [uncertainty, loss] for step, uncertainty, loss in state["losses"]}

    def _calibrate(self) -> None:
        uncertainties, losses = zip(*self._losses.values(), strict=True)
        binary = all(loss in (0.0, 1.0) for loss in losses)
        bound = self._bound or ("clopper-pearson" if binary else "hoeffding-bentkus")
        self.threshold = calibrate(uncertainties, losses, self._terms.epsilon, self._alpha, bound)
