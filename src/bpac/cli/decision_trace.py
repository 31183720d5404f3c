"""Writes every decision of a run, for ``bpac replay --trace``."""

import csv
from collections.abc import Sequence
from pathlib import Path

from bpac.output_files import whole_file
from bpac.routing.decision import Decision

COLUMNS = ("step", "threshold_before", "propensity", "call_expert", "threshold_after")


def write_trace(path: Path, decisions: Sequence[Decision], threshold: float) -> None:
    """Write one row per decision to a CSV file; those of a cascade also say which model's answer was accepted.

    Parameters
    ----------
    path: the file.
    decisions: the decisions, in order.
    threshold: the threshold after the last.
    """
    after = [*(decision.threshold for decision in decisions[1:]), threshold]
    columns = (*COLUMNS, "stage") if decisions[0].cascade is not None else COLUMNS
    with whole_file(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for decision, later in zip(decisions, after, strict=True):
            row = [decision.step, decision.threshold, decision.propensity, int(decision.call_expert), later]
            writer.writerow(row if decision.cascade is None else [*row, decision.cascade.stage])
