"""The short version of ``make faults``: each fault once, under load.

Processes of one machine are killed in ``tests/gateway/workers``.
"""

from pathlib import Path

import pytest

from tests.faults.table import EVERYTHING, all_rows, printed


@pytest.mark.parametrize("scenes", [[EVERYTHING], ["emptied"], ["sentinel"]])
def test_nothing_counts_twice_and_nothing_served_is_missing(scenes: list[str], tmp_path: Path) -> None:
    """Every answer is a round of a journal, once; every audit has an outcome; all that is published follows from it."""
    rows = all_rows(tmp_path, 1, scenes)
    wrong = "\n".join([printed(rows), *(what for row in rows for what in row.wrong)])
    assert not any(row.bad for row in rows), wrong
    assert all(row.decided > 20 and len(row.seconds) == 1 for row in rows), wrong
