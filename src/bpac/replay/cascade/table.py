"""Tables of a cascade: one row per question, with the uncertainty and loss of every model's answer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CascadeTable:
    """Recorded answers of several models, the last of which is the reference.

    Parameters
    ----------
    uncertainty: one row per question, one column per model but the last.
    loss: likewise, against the last model's answer.
    tokens: tokens that each model generated, with the last; none unless known for every row and model.
    lengths: whether the length of an answer is one of its features, where tokens are known (default: true).
    """

    uncertainty: Matrix
    loss: Matrix
    tokens: Matrix | None = None
    lengths: bool = True

    def __len__(self) -> int:
        return len(self.uncertainty)

    @property
    def stages(self) -> int:
        """The number of models, with the reference."""
        return int(self.uncertainty.shape[1]) + 1

    @property
    def has_few_scores(self) -> bool:
        """Whether fewer than one score in ten of some model is distinct, as with stated confidences."""
        return any(10 * len(np.unique(scores)) < len(self) for scores in self.uncertainty.T)

    def take(self, rows: NDArray[np.int64]) -> "CascadeTable":
        """The table with only these rows, in their order."""
        tokens = self.tokens[rows] if self.tokens is not None else None
        return CascadeTable(self.uncertainty[rows], self.loss[rows], tokens, self.lengths)

    def relative_lengths(self) -> Matrix | None:
        """The length of each answer relative to the mean of its model; none where tokens are not known."""
        if self.tokens is None:
            return None
        means = self.tokens.mean(axis=0)
        relative: Matrix = np.divide(self.tokens, means, out=np.ones_like(self.tokens), where=means > 0.0)
        return relative

    def features(self) -> Matrix:
        """What is known of each answer besides its uncertainty: the logarithm of its length, where that is known."""
        if self.tokens is None or not self.lengths:
            return np.empty((len(self), self.stages - 1, 0))
        logs: Matrix = np.log1p(self.tokens[:, :-1])[:, :, None]
        return logs
