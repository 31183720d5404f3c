"""Under load, with outcomes that come late where they are losses: the counts are right, and the promise is kept."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bpac.gateway.games.rounds.decision_ids import read_decision_id
from bpac.routing.audit.audit import audit_journal
from bpac.routing.coins import COMMITTED_BLOCK
from bpac.routing.decision import Decision
from bpac.routing.router import Router
from bpac.stores import Store, open_store
from bpac.stores.export import journal_lines
from tests.gateway.law import KnownPair, Question, Seen, crowd
from tests.gateway.running import Running


@pytest.mark.parametrize("explore", ["serve", "shadow"])
def test_status_certificate_and_journal_agree_under_load(tmp_path: Path, explore: str) -> None:
    """The journal folded offline is the state that the gateway reports; the loss served is within the certificate."""
    requests = 5000 if explore == "serve" else 1500
    store = f"sqlite:///{tmp_path / 'bpac.db'}"
    seen: list[Seen] = []
    # The coins are real, so the certificate may fail; with this alpha, less often than the machine.
    options = {"gateway": {"store": store, "snapshot_every": 1000}, "explore": explore, "alpha": 1e-4}
    with Running(KnownPair(delay=0.002, delay_of_loss=0.05), **options) as (gateway, _):
        failed = asyncio.run(crowd(gateway.url, map(Question, range(requests)), 64, seen))
        gateway.idle()
        reported = gateway.status()
    assert failed == 0
    assert len(seen) == requests
    kept_open = open_store(store, read_only=True)
    (game,) = kept_open.games()
    entries = [kept.entry for kept in kept_open.entries(game)]
    router = Router.rebuild(entries)
    folded = json.loads(json.dumps(router.summary().to_json()))
    assert {name: reported[name] for name in folded} == folded
    assert (reported["steps"], reported["owed"], reported["forfeits"]) == (requests, 0, {})
    assert reported["threshold"] > 0.3
    _check_answers(seen, entries, kept_open)
    served = sum(answer.question.loss for answer in seen if answer.kept)
    certificate = router.certificate()
    assert certificate.lower <= served <= certificate.upper
    assert served / requests <= 0.2
    audit = audit_journal(journal_lines(kept_open, game))
    assert (audit.rounds, audit.differences, audit.unproved) == (requests, [], [])
    assert audit.coins.verified + audit.coins.open == requests
    assert audit.coins.open <= COMMITTED_BLOCK
    assert audit.claims >= 2
    kept_open.close()


def _check_answers(seen: list[Seen], entries: Sequence[object], store: Store) -> None:
    """Every answer belongs to one decision in the journal, and no two answers to the same."""
    decided = {entry.step: entry for entry in entries if isinstance(entry, Decision)}
    steps = set()
    for answer in seen:
        named = read_decision_id(answer.headers["x-bpac-decision"], store)
        assert named is not None
        decision = decided[named[1]]
        steps.add(named[1])
        assert float(answer.headers["x-bpac-uncertainty"]) == decision.uncertainty
        assert float(answer.headers["x-bpac-threshold"]) == decision.threshold
        assert float(answer.headers["x-bpac-propensity"]) == decision.propensity
        assert answer.kept == decision.serve_draft
        assert abs(decision.uncertainty - answer.question.uncertainty) < 1e-12
        assert answer.text == ("wrong" if answer.kept and answer.question.loss else "right")
    assert len(steps) == len(seen)
