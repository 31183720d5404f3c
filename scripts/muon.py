"""The optimizer Muon (Jordan et al. 2024), which makes the momentum of a matrix nearly orthogonal."""

import math
from collections import defaultdict
from collections.abc import Iterable

import torch

from scripts.local_model import Tensor


class Muon:
    """An optimizer whose steps have equal size in all directions of a matrix.

    Parameters
    ----------
    matrices: the matrices to train.
    momentum: share of the previous direction that is kept (default: 0.95).
    decay: weight decay, relative to the learning rate (default: 0.05).
    """

    def __init__(self, matrices: Iterable[Tensor], momentum: float = 0.95, decay: float = 0.05) -> None:
        self.momentum = momentum
        self.decay = decay
        groups: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
        for matrix in matrices:
            groups[tuple(matrix.shape)].append(matrix)
        # Matrices of the same shape are stacked: on a CPU, many small products are slower than a few large ones.
        self.groups = [(group, torch.zeros(len(group), *shape)) for shape, group in groups.items()]

    def step(self, rate: float) -> None:
        """Apply the gradients and clear them.

        Parameters
        ----------
        rate: the learning rate.
        """
        with torch.no_grad():
            for group, direction in self.groups:
                gradient = torch.stack([matrix.grad for matrix in group])
                direction.lerp_(gradient, 1.0 - self.momentum)
                steps = orthogonal(torch.lerp(gradient, direction, self.momentum))
                # With this factor a step is as large as Adam's, so that both can use the same learning rate.
                scale = 0.2 * math.sqrt(max(steps.shape[1:]))
                for matrix, change in zip(group, steps, strict=True):
                    matrix.mul_(1.0 - rate * self.decay).add_(change, alpha=-rate * scale)
                    matrix.grad = None


def orthogonal(matrices: Tensor, rounds: int = 5) -> Tensor:
    """Matrices with the same singular vectors and all singular values near 1, by Newton–Schulz iteration.

    Parameters
    ----------
    matrices: a stack of matrices.
    rounds: number of iterations; the default, 5, leaves singular values between about 0.7 and 1.2.
    """
    wide = matrices.shape[1] <= matrices.shape[2]
    found = matrices if wide else matrices.transpose(1, 2)
    found = found / (found.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = found @ found.transpose(1, 2)
        found = 3.4445 * found + (-4.7750 * square + 2.0315 * square @ square) @ found
    return found if wide else found.transpose(1, 2)
