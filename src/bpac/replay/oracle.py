"""The oracle: the best fixed threshold for a table, computed from all of its losses, which no router can know."""

from dataclasses import replace

import numpy as np

from bpac.replay.tables.table import Table
from bpac.routing.policies import ORACLE, Policy


def oracle_policy(table: Table, epsilon: float) -> Policy:
    """The policy with the largest threshold whose true risk on the table is at most ε; it explores 5 % of drafts."""
    return replace(ORACLE, threshold=_oracle_threshold(table, epsilon))


def oracle_expert_call_rate(table: Table, epsilon: float) -> float:
    """The share of rounds in which the oracle calls the expert."""
    accepted = float(np.mean(table.uncertainty < _oracle_threshold(table, epsilon)))
    return 1.0 - accepted * (1.0 - ORACLE.explores)


def risk_of(table: Table, threshold: float) -> float:
    """The average loss of the drafts below a threshold, over all rows of the table, without the factor κ."""
    return float(np.mean(table.loss * (table.uncertainty < threshold)))


def _oracle_threshold(table: Table, epsilon: float) -> float:
    order = np.argsort(table.uncertainty, kind="stable")
    scores = table.uncertainty[order]
    # Risk of the threshold that lies at each row's score: all rows strictly below it are accepted.
    below = np.searchsorted(scores, scores, side="left")
    sums = np.concatenate(([0.0], np.cumsum(table.loss[order])))
    kept = 1.0 - ORACLE.explores
    if kept * sums[-1] <= epsilon * len(table):
        return 1.0
    safe = scores[kept * sums[below] <= epsilon * len(table)]
    return float(safe[-1])
