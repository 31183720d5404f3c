"""Whether a replay broke the promise: a threshold was in force whose risk on the table exceeds ε."""

from collections.abc import Sequence

from bpac.replay.oracle import risk_of
from bpac.replay.studies.learned import is_unsafe
from bpac.replay.studies.methods import RoutingMethod
from bpac.replay.tables.table import Table
from bpac.routing.decision import Decision


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
