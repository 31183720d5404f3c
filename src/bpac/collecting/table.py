"""From grades to a table for ``bpac replay``. What is not known is left out and counted, never guessed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bpac.arguments import one_of
from bpac.collecting.grading import Grade, read_grades
from bpac.collecting.scoring import DEFAULT, NAMES
from bpac.errors import BpacError
from bpac.replay.tables.writing import write_columns


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table, and what did not become one.

    Parameters
    ----------
    score: the score in the column ``uncertainty``.
    columns: the columns by name; each has a cell for every row, none where it is not known.
    left_out: why questions have no row, and how many for each reason.
    examples: one question for each reason, with the reason in full.
    scores_left_out: why a score has no column.
    """

    score: str
    columns: Mapping[str, Sequence[Any]]
    left_out: Mapping[str, int]
    examples: Mapping[str, str]
    scores_left_out: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.columns["loss"])

    def summary(self) -> dict[str, Any]:
        """The figures of the table; none where they are not known."""
        wrong = [1.0 - right for right in self.columns.get("draft_correct", ())]
        prefix = "uncertainty_"
        scores = {name.removeprefix(prefix): column for name, column in self.columns.items() if prefix in name}
        return {
            "rows": len(self),
            "score": self.score,
            "left_out": sum(self.left_out.values()),
            "reasons": dict(self.left_out),
            "examples": dict(self.examples),
            "scores_left_out": dict(self.scores_left_out),
            "loss": _mean(self.columns["loss"]),
            "draft_accuracy": _mean(self.columns.get("draft_correct")),
            "expert_accuracy": _mean(self.columns.get("expert_correct")),
            "draft_tokens": _mean(self.columns.get("draft_tokens")),
            "expert_tokens": _mean(self.columns.get("expert_tokens")),
            "auroc": {name: auroc(column, wrong) for name, column in scores.items()} if wrong else None,
        }

    def write(self, path: Path) -> None:
        """Write the table in the format its file's name asks for; it appears whole or not at all."""
        write_columns(self.columns, path)


def table_of(grades: Sequence[Grade], score: str = DEFAULT) -> Rows:
    """The rows that are known, in order.

    Parameters
    ----------
    grades: one for each question.
    score: which score is the ``uncertainty``; the others get columns of their own, ``uncertainty_NAME``.

    >>> right = Grade("1", "", "", loss=0.0, scores={"perplexity": 0.25}, draft_correct=True, expert_correct=True)
    >>> failed = Grade("2", "", "", unknown="the draft failed", reason="status 500")
    >>> rows = table_of([right, failed], "perplexity")
    >>> rows.columns["uncertainty"], rows.left_out
    ([0.25], {'the draft failed': 1})
    """
    one_of(score, "score", NAMES)
    left_out: Counter[str] = Counter()
    examples: dict[str, str] = {}
    known: list[Grade] = []
    for grade in grades:
        why, reason = grade.unknown, grade.reason
        if not why and score not in grade.scores:
            why = f"the draft has no {score}"
            reason = grade.unscored.get(score, "it does not fit the question")
        if why:
            left_out[why] += 1
            examples.setdefault(why, f"question {grade.id}: {reason}")
        else:
            known.append(grade)
    if not known:
        raise BpacError(_nothing(score, left_out, examples))
    columns, scores_left_out = _columns(known, score)
    return Rows(score, columns, dict(left_out.most_common()), examples, scores_left_out)


def _nothing(score: str, left_out: Counter[str], examples: Mapping[str, str]) -> str:
    """Why there is no table, and what to do about it."""
    scoreless = f"the draft has no {score}"
    others = "; ".join(f"{why} ({count})" for why, count in left_out.most_common() if why != scoreless)
    if scoreless not in left_out:
        return f"no question has a known loss, so there is no table: {others or 'there are no grades'}"
    also = f" Of the other questions no loss is known: {others}" if others else ""
    return (
        f"the score {score} is missing in every question with a known loss ({left_out[scoreless]}), so there is no "
        f"table: choose another with --score, or collect what it is computed from. For example, "
        f"{examples[scoreless]}.{also}"
    )


def _columns(known: Sequence[Grade], score: str) -> tuple[dict[str, list[Any]], dict[str, str]]:
    columns: dict[str, list[Any]] = {
        "id": [grade.id for grade in known],
        "category": [grade.category for grade in known],
        "uncertainty": [grade.scores[score] for grade in known],
    }
    scores_left_out: dict[str, str] = {}
    for name in NAMES:
        missing = [grade for grade in known if name not in grade.scores]
        if not missing:
            columns[f"uncertainty_{name}"] = [grade.scores[name] for grade in known]
        # A column with holes cannot be replayed. A score that fits none of the questions is not missed.
        elif any(name in grade.scores or name in grade.unscored for grade in known):
            reason = missing[0].unscored.get(name, "it does not fit the question")
            scores_left_out[name] = f"unknown in {len(missing)} of {len(known)} rows: {reason}"
    columns["loss"] = [grade.loss for grade in known]
    for name in ("draft_tokens", "expert_tokens"):
        columns[name] = [getattr(grade, name) for grade in known]
    if all(grade.expert_mark is None for grade in known):
        for name in ("draft_correct", "expert_correct"):
            columns[name] = [int(getattr(grade, name)) for grade in known]
    else:
        for name in ("draft_mark", "expert_mark"):
            columns[name] = [getattr(grade, name) for grade in known]
        columns["expert_preferred"] = [int(grade.expert_mark > grade.draft_mark) for grade in known]  # type: ignore[operator]
    return columns, scores_left_out


def read_graded(path: Path) -> list[Grade]:
    """The grade of every question in a file, in the order in which they were first graded."""
    return list({grade.id: grade for grade in read_grades(path)}.values())


def auroc(uncertainty: ArrayLike, wrong: ArrayLike) -> float | None:
    """The chance that a wrong draft is more uncertain than a right one, ties counting half; none if all are alike.

    >>> auroc([0.1, 0.3, 0.3], [0, 1, 0])
    0.75
    """
    scores, bad = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong) == 1
    if bad.all() or not bad.any():
        return None
    right = np.sort(scores[~bad])
    below, upto = (np.searchsorted(right, scores[bad], side=side) for side in ("left", "right"))
    return float((below + upto).mean() / (2 * len(right)))


def _mean(values: Sequence[float | None] | None) -> float | None:
    if not values or any(value is None for value in values):
        return None
    return float(np.mean(np.asarray(values, dtype=np.float64)))
