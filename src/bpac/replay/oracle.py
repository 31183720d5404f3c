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


def risk_of(table: Table, threshold: float, dither: float = 0.0) -> float:
    """The average loss of the drafts below a threshold, over all rows of the table, without the factor κ.

    Parameters
    ----------
    table: the table.
    threshold: the threshold.
    dither: by how much scores are lowered at random at most; the risk is the mean over the draws.
    """
    scores = table.uncertainty
    below = (scores < threshold).astype(np.float64)
    if dither:
        # U (1 − w V) < u for all V above (1 − u/U) / w.
        spread = (scores > threshold) & (scores < 1.0)
        below[spread] = np.clip(1.0 - (1.0 - threshold / scores[spread]) / dither, 0.0, 1.0)
    return float(np.mean(table.loss * below))


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
