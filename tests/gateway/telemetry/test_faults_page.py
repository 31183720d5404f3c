"""The page docs/faults.md names every kind of failure, every cause of a failed store and every log line."""

from pathlib import Path

import pytest

from bpac.dashboard.remedies import UNSCORED
from bpac.gateway.telemetry.failures.upstream_failures import REMEDIES

PAGE = (Path(__file__).parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")
SOURCES = Path(__file__).parents[3] / "src" / "bpac"
LINES = {
    "model failed": "gateway/telemetry/failures/upstream_failures.py",
    "model cannot be used": "gateway/telemetry/failures/upstream_failures.py",
    "model answers again": "gateway/telemetry/failures/upstream_failures.py",
    "no score: the expert answers instead of the draft": "gateway/telemetry/failures/unscored_log.py",
    "a session was forgotten, because there are too many: lower sticky_idle": "gateway/games/rounds/sessions.py",
    "scores are wrong": "gateway/telemetry/score_watch.py",
    "the loss does not suit the traffic": "gateway/telemetry/prose_watch.py",
    "the draft's server is down": "gateway/games/rounds/drafting.py",
    "the store failed": "stores/sqlite/writing/commits.py",
    "old entries cannot be archived: Redis keeps them": "gateway/shared/archiving.py",
    "Redis can be used again": "gateway/shared/outages/outages.py",
    "the store still cannot be used": "gateway/telemetry/failures/store_failures.py",
    "a front process was lost: what it had under way counts as cut off": "gateway/workers/owner/fronts.py",
    "a process sent what cannot be read: its connection was ended": "gateway/workers/owner/session.py",
    "the owner of the journal cannot be reached: requests wait": "gateway/workers/front/owner_link.py",
    "the supervisor has ended: this process stops, too": "gateway/workers/processes.py",
    "the store works again: every durable entry was read back, and nothing was lost": (
        "gateway/telemetry/failures/store_failures.py"
    ),
}


@pytest.mark.parametrize("kind", REMEDIES)
def test_every_kind_of_failure_is_on_the_page(kind: str) -> None:
    """An operator who sees a kind in the metrics finds it."""
    assert f"`{kind}`" in PAGE


@pytest.mark.parametrize("reason", sorted(set(UNSCORED) - {"n", "modalities", "error"}))
def test_every_reason_of_the_draft_is_on_the_page(reason: str) -> None:
    """The reasons that callers choose themselves, several choices for example, are no faults."""
    assert f"`{reason}`" in PAGE


@pytest.mark.parametrize("line", LINES)
def test_the_log_lines_of_the_page_are_those_of_the_gateway(line: str) -> None:
    """A line that the page quotes can be searched for in the log."""
    assert f"`{line}`" in PAGE
    assert line in (SOURCES / LINES[line]).read_text(encoding="utf-8")
