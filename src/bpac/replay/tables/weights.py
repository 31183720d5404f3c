"""Tables whose rows stand for different numbers of requests: the audited rounds of a gateway, with their propensity.

A gateway audits uncertain drafts always and certain ones seldom, so its audited rounds alone are harder than its
traffic. A round that was audited with probability π stands for 1/π requests like it: repeated as often, the rounds have
the distribution of the traffic, and shuffled, they are a stream like it. They hold no more information than before, so
such a table is for replays and never a history that bets are made on.
"""

from dataclasses import dataclass

from bpac.replay.tables.builtin import PREFIX, open_table
from bpac.replay.tables.reading import read_weighted_table
from bpac.replay.tables.table import Table, reweighted


@dataclass(frozen=True, slots=True)
class ReplayTable:
    """A table to replay.

    Parameters
    ----------
    table: the table, with every row as often as it counts.
    recorded: the table of the file, if some of its rows count more than once; else none.
    """

    table: Table
    recorded: Table | None = None


def open_replay_table(source: str, score: str = "uncertainty") -> ReplayTable:
    """The table in a file, with its weights if it has a column ``propensity``, or a built-in table."""
    if source.startswith(PREFIX):
        return ReplayTable(open_table(source, score))
    table, weights = read_weighted_table(source, score)
    return ReplayTable(table) if weights is None else ReplayTable(reweighted(table, weights), table)
