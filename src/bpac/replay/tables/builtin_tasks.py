"""The built-in table with features: tasks of unequal size, draft lengths and stated confidences to learn from.

1. Every question belongs to a task and has a difficulty: normal with deviation 1 around the mean of its task.
2. The draft is wrong with probability ``1 / (1 + exp(-STEEP · (difficulty - HARD)))``, and then its loss is 1.
3. The score, the length of the draft and the confidence that it states each follow the difficulty with a noise of their
   own. So each says something that the others do not, and a score that is learned from all of them ranks losses better
   than the score alone. How much better follows from the noises below: they were chosen so that learning shows, and not
   measured on any model.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bpac.replay.tables.table import Table, shuffled

STEEP, HARD = 2.0, 1.3
# Noise of each, in units of the difficulty.
SCORE_NOISE, LENGTH_NOISE, CONFIDENCE_NOISE = 2.0, 0.8, 0.8
# Share of the drafts that state no confidence.
SILENT = 0.1


@dataclass(frozen=True, slots=True)
class TaskShape:
    """A kind of question.

    Parameters
    ----------
    share: share of the questions.
    difficulty: mean difficulty.
    draft_tokens: typical length of a draft.
    """

    share: float
    difficulty: float
    draft_tokens: float


@dataclass(frozen=True, slots=True)
class BuiltinTasks:
    """A generated table with features.

    Parameters
    ----------
    rows: number of questions.
    tasks: the tasks by name.
    """

    rows: int
    tasks: dict[str, TaskShape]

    def table(self, seed: int = 0, rows: int | None = None) -> Table:
        """A random table; each task has its share of the questions."""
        rng = np.random.default_rng(seed)
        count = rows or self.rows
        ends = np.round(np.cumsum([task.share for task in self.tasks.values()]) * count).astype(int)
        of_task = np.searchsorted(ends, np.arange(count), side="right")
        mean, length = np.array([(task.difficulty, task.draft_tokens) for task in self.tasks.values()]).T
        difficulty = mean[of_task] + rng.standard_normal(count)

        def seen(noise: float) -> NDArray[np.float64]:
            with_noise: NDArray[np.float64] = difficulty + noise * rng.standard_normal(count)
            return with_noise

        loss = (rng.random(count) < 1.0 / (1.0 + np.exp(-STEEP * (difficulty - HARD)))).astype(np.float64)
        uncertainty = 1.0 / (1.0 + np.exp(-seen(SCORE_NOISE)))
        drafts = np.ceil(length[of_task] * np.exp(0.3 * (seen(LENGTH_NOISE) - mean[of_task])))
        confidence = np.clip(5.0 * np.round(17.0 - 2.0 * seen(CONFIDENCE_NOISE)), 0.0, 100.0).astype(np.object_)
        confidence[rng.random(count) < SILENT] = None
        experts = np.ceil(1200.0 * np.exp(0.3 * difficulty) * rng.lognormal(-0.08, 0.4, count))
        features = {
            "draft_tokens": drafts.astype(np.object_),
            "stated_confidence": confidence,
            "category": np.array(list(self.tasks), dtype=np.object_)[of_task],
        }
        return shuffled(Table(uncertainty, loss, drafts, experts, features=features), rng)


TASKS = {
    "tasks-like": BuiltinTasks(
        5_000,
        {
            "chat": TaskShape(0.40, -0.6, 220.0),
            "extraction": TaskShape(0.25, -0.2, 90.0),
            "code": TaskShape(0.16, 0.4, 480.0),
            "mathematics": TaskShape(0.11, 0.8, 380.0),
            "law": TaskShape(0.08, 0.0, 300.0),
        },
    )
}
