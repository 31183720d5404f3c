"""Recognises prose in a route whose loss compares final answers, so that nearly every loss is unknown or 1."""

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bpac.answer import Answer
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.grading.text.prose import is_prose
from bpac.losses import Loss

log = logging.getLogger("bpac.gateway")

# How many of the latest comparisons are looked at, how many there must be, and the share of prose that is too much.
LATEST, FEWEST, TOO_MUCH = 100, 20, 0.5


@dataclass(slots=True, eq=False)
class ProseWatch:
    """A loss that also notes how often it compares prose in vain.

    Parameters
    ----------
    loss: the loss.
    route: the name of the route.
    name: the name of the loss in the configuration.
    """

    loss: Loss
    route: str
    name: str
    _latest: deque[bool] = field(default_factory=lambda: deque(maxlen=LATEST))
    _since: float | None = None
    _log_rate: LogRate = field(default_factory=LogRate)

    def __call__(self, draft: Answer, expert: Answer) -> float | None:
        """The loss of a draft."""
        loss = self.loss(draft, expert)
        # Prose that is equal word by word, such as a greeting, is compared well.
        self._latest.append(loss != 0.0 and not expert.tool_calls and is_prose(expert.text))
        if not self.warns:
            self._since = None
            return loss
        if self._since is None:
            self._since = round(time.time(), 3)
        if times := self._log_rate.count("prose"):
            log.warning("the loss does not suit the traffic", extra={**self.to_json(), "since_last_line": times})
        return loss

    @property
    def warns(self) -> bool:
        """Whether most of the latest answers were prose."""
        count = len(self._latest)
        return count >= FEWEST and sum(tuple(self._latest)) >= TOO_MUCH * count

    def to_json(self) -> dict[str, Any]:
        """The warning as JSON values."""
        prose, count = sum(tuple(self._latest)), len(self._latest)
        return {
            "route": self.route,
            "since": self._since,
            "count": prose,
            "what": f'{prose} of the last {count} answers that loss = "{self.name}" compared are prose: two good texts '
            "differ, so that their loss is unknown and counts as 1",
            "cost": "no threshold can be certified, and the expert answers every request",
            "remedy": f'set loss = {{ name = "judge", judge = … }} or loss = "embedding" in routes.{self.route}; '
            "docs/providers.md says which loss suits which traffic",
        }


def warnings_of(grader: object) -> Iterator[dict[str, Any]]:
    """The warnings of a grader, as JSON values."""
    watch = getattr(grader, "loss", None)
    if isinstance(watch, ProseWatch) and watch.warns:
        yield watch.to_json()
