"""The audits that a score is learned from."""

from collections.abc import ItemsView
from typing import Any, NamedTuple

from bpac.routing.learning.features import Feature

# Later samples replace the earliest, so that the memory of a route is bounded.
MOST_SAMPLES = 4096
# The step of a round; where several games learn together, the number of its game and its step.
Step = int | tuple[int, int]


class Sample(NamedTuple):
    """An audit with its outcome.

    Parameters
    ----------
    features: score of the draft, and then its features.
    loss: its loss.
    propensity: with which it was audited (π).
    """

    features: tuple[Feature, ...]
    loss: float
    propensity: float


class Samples:
    """The latest audits with an outcome, by step. Neither order nor repetition of outcomes changes what is fitted."""

    __slots__ = ("_by_step", "count", "losses")

    def __init__(self) -> None:
        self._by_step: dict[Step, Sample] = {}
        self.count = 0
        self.losses = 0.0

    def add(self, step: Step, sample: Sample) -> None:
        """Add an audit; if it is there already, because it was given up, its loss is now known."""
        earlier = self._by_step.get(step)
        if earlier is not None:
            self.losses -= earlier.loss
        else:
            self.count += 1
        self._by_step[step] = sample
        self.losses += sample.loss
        if len(self._by_step) > MOST_SAMPLES:
            del self._by_step[next(iter(self._by_step))]

    def items(self) -> ItemsView[Any, Sample]:
        """The samples by step."""
        return self._by_step.items()

    def in_order(self) -> list[Sample]:
        """The samples in order of their steps."""
        return [self._by_step[step] for step in sorted(self._by_step)]

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        rows = [[step, list(sample.features), *sample[1:]] for step, sample in self._by_step.items()]
        return {"count": self.count, "losses": self.losses, "rows": rows}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.count, self.losses = state["count"], state["losses"]
        self._by_step = {step: Sample(tuple(features), *rest) for step, features, *rest in state["rows"]}
