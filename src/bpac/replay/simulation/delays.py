"""When outcomes arrive: at once, after a delay, after a longer delay where the draft loses, or never."""

from dataclasses import dataclass

import numpy as np

from bpac.errors import InputError

# Outcomes with a loss take this many times as long as others, and are lost this many times as often.
LOSS_FACTOR = 3.0


@dataclass(frozen=True, slots=True)
class Delay:
    """A model of late feedback.

    Parameters
    ----------
    mean: mean delay of an outcome, in requests.
    by_loss: whether outcomes with a loss take three times as long.
    lost: share of outcomes without a loss that never arrive and are forfeited; it is three times that for losses.
    deadline: number of requests after which an outcome that has not arrived is given up.
    """

    mean: float = 0.0
    by_loss: bool = False
    lost: float = 0.0
    deadline: int = 200

    @classmethod
    def parse(cls, text: str) -> "Delay":
        """Read ``none``, ``independent:MEAN``, ``losses:MEAN`` or ``lost:SHARE``.

        >>> Delay.parse("losses:20")
        Delay(mean=20.0, by_loss=True, lost=0.0, deadline=200)
        """
        kind, colon, amount = text.partition(":")
        defaults = {"none": 0.0, "independent": 20.0, "losses": 20.0, "lost": 0.1}
        try:
            value = float(amount) if colon else defaults[kind]
            most = 1.0 / LOSS_FACTOR if kind == "lost" else 1e6
            if not 0.0 <= value <= most or (kind == "none" and colon):
                raise ValueError
        except (KeyError, ValueError):
            raise InputError(
                f"delay {text!r} is none of: none, independent:MEAN, losses:MEAN (in requests), lost:SHARE (up to 1/3)"
            ) from None
        if kind == "lost":
            return cls(lost=value)
        return cls(mean=value, by_loss=kind == "losses")

    def draw(self, loss: float, rng: np.random.Generator) -> tuple[int, bool]:
        """The delay of an outcome in requests, and whether it is lost."""
        worse = LOSS_FACTOR if loss > 0.0 else 1.0
        if self.lost:
            return (self.deadline, True) if rng.random() < self.lost * worse else (0, False)
        mean = self.mean * (worse if self.by_loss else 1.0)
        return (int(rng.exponential(mean)) if mean else 0, False)
