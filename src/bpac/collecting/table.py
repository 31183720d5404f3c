"""``bpac table``: a table for ``bpac replay`` from grades. Questions with unknown values are left out and counted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bpac.arguments import one_of
from bpac.collecting.draft_scores import DEFAULT, NAMES
from bpac.collecting.grade import Grade, read_grades
from bpac.errors import BpacError
from bpac.replay.tables.writing import write_columns


@dataclass(frozen=True, slots=True)
class GradedTable:
    """A table for replay, and the questions that are not in it.

    Parameters
    ----------
    score: the score in the column ``uncertainty``.
    columns: the columns by name, with one value per row; none where it is unknown.
    left_out: the reasons why questions were left out, and the number of questions for each.
    examples: one question for each reason, with details.
    scores_left_out: the reasons why scores have no column.
    """

    score: str
    columns: Mapping[str, Sequence[Any]]
    left_out: Mapping[str, int]
    examples: Mapping[str, str]
    scores_left_out: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.columns["loss"])

    def summary(self) -> dict[str, Any]:
        """The statistics of the table; none where they are unknown."""
        wrong = [1.0 - correct for correct in self.columns.get("draft_correct", ())]
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
        """Write the table in the format of the file's ending; the file is written completely or not at all."""
        write_columns(self.columns, path)


def build_table(grades: Sequence[Grade], score: str = DEFAULT) -> GradedTable:
    """A table with one row for each question whose loss and score are known, in order.

    Parameters
    ----------
    grades: one grade for each question.
    score: the score for the column ``uncertainty``; every score also has its own column, ``uncertainty_NAME``.

    >>> right = Grade("1", "", "", loss=0.0, scores={"perplexity": 0.25}, draft_correct=True, expert_correct=True)
    >>> failed = Grade("2", "", "", unknown="the draft failed", reason="status 500")
    >>> rows = build_table([right, failed], "perplexity")
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
            reason = grade.unscored.get(score, "it does not apply to the question")
        if why:
            left_out[why] += 1
            examples.setdefault(why, f"question {grade.id}: {reason}")
        else:
            known.append(grade)
    if not known:
        raise BpacError(_nothing(score, left_out, examples))
    columns, scores_left_out = _columns(known, score)
    return GradedTable(score, columns, dict(left_out.most_common()), examples, scores_left_out)


def _nothing(score: str, left_out: Counter[str], examples: Mapping[str, str]) -> str:
    """The error message for a table without rows."""
    scoreless = f"the draft has no {score}"
    others = "; ".join(f"{why} ({count})" for why, count in left_out.most_common() if why != scoreless)
    if scoreless not in left_out:
        return f"the table would be empty: no question has a known loss ({others or 'there are no grades'})"
    also = f" The loss of the other questions is unknown: {others}" if others else ""
    return (
        f"the table would be empty: all {left_out[scoreless]} questions with a known loss lack the score {score}. "
        f"Choose another with --score, or collect again with the log-probabilities that it needs. For example, "
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
        # A column with gaps cannot be replayed. A score that does not apply to any question is not reported.
        elif any(name in grade.scores or name in grade.unscored for grade in known):
            reason = missing[0].unscored.get(name, "it does not apply to the question")
            scores_left_out[name] = f"unknown in {len(missing)} of {len(known)} rows: {reason}"
    columns["loss"] = [grade.loss for grade in known]
    for name in ("draft_tokens", "expert_tokens"):
        columns[name] = [getattr(grade, name) for grade in known]
    if all(grade.expert_mark is None for grade in known):
        for name in ("draft_correct", "expert_correct"):
            # Own questions may have no correct answer: their drafts are compared with the expert.
            if all(getattr(grade, name) is not None for grade in known):
                columns[name] = [int(getattr(grade, name)) for grade in known]
    else:
        for name in ("draft_mark", "expert_mark"):
            columns[name] = [getattr(grade, name) for grade in known]
        columns["expert_preferred"] = [int(grade.expert_mark > grade.draft_mark) for grade in known]  # type: ignore[operator]
    return columns, scores_left_out


def read_latest_grades(path: Path) -> list[Grade]:
    """The last grade of every question in a file, in the order in which the questions were first graded."""
    return list({grade.id: grade for grade in read_grades(path)}.values())


def auroc(uncertainty: ArrayLike, wrong: ArrayLike) -> float | None:
    """The probability that a wrong draft is more uncertain than a correct one; ties count half.

    None if all drafts are correct or all are wrong.

    >>> auroc([0.1, 0.3, 0.3], [0, 1, 0])
    0.75
    """
    scores, is_wrong = np.asarray(uncertainty, dtype=np.float64), np.asarray(wrong) == 1
    if is_wrong.all() or not is_wrong.any():
        return None
    correct = np.sort(scores[~is_wrong])
    below, not_above = (np.searchsorted(correct, scores[is_wrong], side=side) for side in ("left", "right"))
    return float((below + not_above).mean() / (2 * len(correct)))


def _mean(values: Sequence[float | None] | None) -> float | None:
    if not values or any(value is None for value in values):
        return None
    return float(np.mean(np.asarray(values, dtype=np.float64)))
