"""Whether a replay broke the promise: a threshold was in force whose risk on the table exceeds ε."""

from collections.abc import Sequence

import numpy as np

from bpac.replay.oracle import risk_of
from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.tables.table import Table
from bpac.routing.decision import Decision
from bpac.routing.learning.model import RETIRED


def ever_unsafe(method: RoutingMethod, table: Table, decisions: Sequence[Decision]) -> bool:
    """Whether a threshold was in force whose risk on the table exceeds ε.

    Parameters
    ----------
    method: how the table was routed.
    table: the table, in the order of the decisions.
    decisions: what was decided.
    """
    kept_share = method.settings.terms.kept_share
    if method.policy.learned is not None:
        return is_unsafe(table, decisions, kept_share, method.epsilon)
    highest = max(decision.threshold for decision in decisions)
    risk = risk_of(table, highest, getattr(method.policy, "dither", 0.0))
    return kept_share * risk > method.epsilon + 1e-12


def is_unsafe(table: Table, decisions: Sequence[Decision], kept_share: float, epsilon: float) -> bool:
    """Whether a threshold was in force whose risk, by the rows that have its score, exceeds ε.

    The risk of a learned score is that of the rows after it had joined, up to the next drift alarm: only they have it.

    Parameters
    ----------
    table: the table, in the order of the decisions.
    decisions: what was decided; at least one.
    kept_share: largest share of the drafts below the threshold that is served (κ).
    epsilon: the average loss that is allowed (ε).
    """
    rows: dict[tuple[int, int], list[int]] = {}
    values: dict[tuple[int, int], list[float]] = {}
    highest: dict[tuple[int, int], float] = {}
    for row, decision in enumerate(decisions):
        for score, value in enumerate(decision.uncertainties or (decision.uncertainty,)):
            if score and value == RETIRED:
                continue  # it is not known any more; and if it is a prediction, no threshold accepts it
            # An alarm ends what was learned: the score of that number in the next epoch is another one.
            key = (decision.epoch, score) if score else (0, 0)
            rows.setdefault(key, []).append(row)
            values.setdefault(key, []).append(value)
            if value == decision.uncertainty:
                highest[key] = max(highest.get(key, 0.0), decision.threshold)
    return any(
        kept_share * float(np.mean(table.loss[rows[key]] * (np.array(values[key]) < threshold))) > epsilon + 1e-12
        for key, threshold in highest.items()
    )
