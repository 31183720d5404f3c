"""The paper's bettor: rounds are settled in decision order."""

from typing import Any

from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.grid import GridWealth
from bpac.routing.decision import Decision


class InOrder:
    """The paper's bettor: bets depend on the order of rounds, so each is settled when all before it are."""

    def __init__(self, wealth: GridWealth) -> None:
        self.wealth = wealth
        # [decision, loss, count] in decision order. The loss of an owed round is None. Kept drafts
        # that wait behind one differ in their rate only, so that a run of them with one rate is one entry.
        self._waiting: list[list[Any]] = []
        self._owed: dict[int, list[Any]] = {}
        self.threshold = 0.0

    def decided(self, decision: Round) -> None:
        """Settle a kept draft, unless an earlier round is owed; an audit is settled when it is resolved."""
        if decision.call_expert:
            return
        if not self._waiting:
            self._settle(decision, 0.0)
            return
        last = self._waiting[-1]
        if not last[0].call_expert and last[0].least_propensity == decision.least_propensity:
            last[2] += 1
        else:
            self._waiting.append([decision, 0.0, 1])

    def resolve(self, decision: Round, loss: float) -> None:
        """Settle the round, unless an earlier one is owed."""
        if self._waiting:
            self._waiting.append([decision, loss, 1])
        else:
            self._settle(decision, loss)

    def charge(self, decision: Round) -> None:
        """Nothing is charged: the rounds behind an owed one wait for it."""
        entry: list[Any] = [decision, None, 1]
        self._waiting.append(entry)
        self._owed[decision.step] = entry

    def refund(self, decision: Round, loss: float) -> None:
        """Settle an owed round and what it was holding back."""
        self._fill(decision, decision, loss)

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Settle the other round instead of this one."""
        if charged:
            self._fill(decision, instead, loss)
        else:
            self.resolve(instead, loss)

    def _fill(self, decision: Round, instead: Round, loss: float) -> None:
        self._owed.pop(decision.step)[:2] = instead, loss
        ready = 0
        for waiting, known, count in self._waiting:
            if known is None:
                break
            for _ in range(count):
                self._settle(waiting, known)
            ready += 1
        del self._waiting[:ready]

    def forfeit(self, decision: Round) -> None:
        """Settle the round with loss 1 permanently."""
        self.refund(decision, 1.0)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "wealth": self.wealth.state(),
            "waiting": [[d.to_list(), loss, count] for d, loss, count in self._waiting],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.wealth.load(state["wealth"])
        self.threshold = self.wealth.threshold
        self._waiting = [[Decision.from_list(d), loss, count] for d, loss, count in state["waiting"]]
        self._owed = {entry[0].step: entry for entry in self._waiting if entry[1] is None}

    def _settle(self, decision: Round, loss: float) -> None:
        self.wealth.settle(decision.uncertainty, decision.propensity, decision.least_propensity, loss)
        self.threshold = self.wealth.threshold
