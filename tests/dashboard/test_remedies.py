"""Every cause that the gateway counts has a remedy of its own."""

import re
from pathlib import Path

from bpac.dashboard.remedies import FORFEITED, UNSCORED, remedies_of
from bpac.gateway.games.rounds import outcomes
from bpac.routing.route import CROWDED_OUT

DOCS = (Path(__file__).parents[2] / "docs" / "gateway.md").read_text(encoding="utf-8")


def test_every_forfeit_has_a_remedy() -> None:
    """Each cause for which an audit is given up, and no other."""
    causes = {outcomes.EXPERT_FAILED, outcomes.DRAFT_FAILED, outcomes.DRAFT_CANCELLED, outcomes.GRADER_FAILED}
    assert FORFEITED.keys() == causes | {outcomes.DEADLINE, outcomes.RESTART, CROWDED_OUT}


def test_every_reason_without_a_score_has_a_remedy() -> None:
    """Those that the gateway's documentation lists, and an error of the gateway itself."""
    listed = re.search(r"^\| `x-bpac-unscored` \|(.*)\|$", DOCS, re.MULTILINE)
    assert listed is not None
    assert UNSCORED.keys() == {*re.findall(r"`(.+?)`", listed[1]), "error"}
    assert remedies_of(["something new"], UNSCORED) == {"something new": "see the gateway's log"}
