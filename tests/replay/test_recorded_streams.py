"""Streams of recorded drafts with features: what was in force is judged by the score that it belongs to."""

from typing import Any, cast

import numpy as np
import pytest

from bpac.cli.program import main
from bpac.replay.router_factory import RouterFactory, learning_for
from bpac.replay.simulation.fault_rules import FaultRules
from bpac.replay.simulation.recorded import DITHERS, RecordedStream, RecordedStreams
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.table import Table
from bpac.replay.validation import Validation
from bpac.routing.coins import SeededCoins
from bpac.routing.decision import Decision
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router
from tests.cli.running import run_json

# The learned score is the logistic function of the feature.
MODEL = FrozenModel(
    {
        "intercept": 0.0,
        "terms": [
            {"knots": [], "values": [], "words": {}, "missing": 0.0},
            {"knots": [-2.0, 2.0], "values": [-2.0, 2.0], "words": {}, "missing": 0.0},
        ],
    }
)


class WithModels:
    """A router of which only the models are asked for."""

    def __init__(self, *models: FrozenModel | OwnScore) -> None:
        self._models = models

    def learned_models(self) -> tuple[FrozenModel | OwnScore, ...]:
        """The models."""
        return self._models


def decided(threshold: float, score: int, *scores: float, epoch: int = 1) -> Decision:
    """A decision by one of several scores."""
    return Decision(
        *(1, scores[score], threshold, 1.0, 0.05),
        call_expert=True,
        serve_draft=False,
        epoch=epoch,
        uncertainties=scores,
        features=(0.0,),
    )


def started(dither: float = 0.0) -> RecordedStream:
    """A stream of four drafts, of which those with the feature 0 and 2 lose."""
    table = Table(
        np.array([0.1, 0.2, 0.3, 0.4]),
        np.array([0.0, 0.0, 1.0, 1.0]),
        features={"hint": np.array([-2.0, -1.0, 0.0, 2.0], dtype=np.object_)},
    )
    stream = RecordedStreams(table).start(10, np.random.default_rng(1))
    policy = Portfolio(learn=LearnedScore(("hint",)), dither=dither)
    router = Router(0.1, 0.1, policy, coins=SeededCoins(1))
    stream.gateway(router, tickets=False, rules=FaultRules(), rebuild=cast(Any, None))
    return stream


def test_a_threshold_is_judged_by_its_own_score() -> None:
    """0.35 accepts one of the losses by the first score, and none by the learned one, where 0.6 accepts one."""
    router = cast(Router, WithModels(MODEL))
    for threshold, score, risk in ((0.0, 0, 0.0), (0.35, 0, 0.25), (0.35, 1, 0.0), (0.6, 1, 0.25), (0.9, 1, 0.5)):
        stream = started()
        stream.decided(decided(threshold, score, 0.15, 0.3), router)
        assert stream.largest_risk() == risk
        stream.decided(decided(0.01, 1, 0.15, 0.3, epoch=2), router)
        assert stream.largest_risk() == risk, "a later epoch does not make up for it"


def test_a_fit_that_did_not_join_decides_nothing() -> None:
    """Its values are those of the first score; a draft on which two scores agree does not say which one decided."""
    stream = started()
    stream.decided(decided(0.35, 0, 0.2, 0.2, 0.5), cast(Router, WithModels(OwnScore(), MODEL)))
    assert stream.largest_risk() == 0.25
    stream = started()
    stream.decided(decided(0.99, 0, 0.2, 0.2), cast(Router, WithModels(MODEL)))
    assert stream.largest_risk() == 0.0


def test_dithered_scores_have_the_mean_risk() -> None:
    """The first score 0.4 is below 0.396 for a quarter of the draws of up to 4 %; the learned one ignores it here."""
    stream = started(dither=0.04)
    stream.decided(decided(0.39, 0, 0.15, 0.3), cast(Router, WithModels(MODEL)))
    assert stream.largest_risk() == pytest.approx(0.25 + 0.25 * 0.375, abs=1.0 / DITHERS)
    stream.decided(decided(0.9, 1, 0.15, 0.3), cast(Router, WithModels(MODEL)))
    assert stream.largest_risk() == 0.5


def test_validation_sees_what_a_learned_score_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh routers keep the promise; if thresholds of learned scores are raised, the same streams break it."""
    table = builtin_table("tasks-like", rows=1000)
    factory = RouterFactory(learning_for(Portfolio(), table), 0.1, 0.1)
    validation = Validation(factory, RecordedStreams(table), 700)
    assert sum("threshold" in validation.stream(seed).broken for seed in range(4)) <= 1
    noted = RecordedStream.decided

    def raised(stream: RecordedStream, decision: Decision, router: Router) -> None:
        scores = decision.uncertainties
        if len(scores) > 1:
            decision = decision._replace(uncertainty=scores[1], threshold=0.95)
        noted(stream, decision, router)

    monkeypatch.setattr(RecordedStream, "decided", raised)
    assert all("threshold" in validation.stream(seed).broken for seed in range(4))


def test_validate_learns_where_a_table_has_features(capsys: pytest.CaptureFixture[str]) -> None:
    """By default with the default policy, with tickets and crashes; the report names what was learned from."""
    few = ("validate", "--table", "builtin:tasks-like", "--streams", "2", "--steps", "300")
    learned = run_json(capsys, *few, "--in-flight", "4", "--crash-every", "100")
    plain = run_json(capsys, *few, "--no-learn")
    assert learned["learn"] == ["draft_tokens", "stated_confidence", "category"]
    assert plain["learn"] is None
    assert learned.keys() == plain.keys()
    assert main([*few]) == 0
    assert "with a score learned from draft_tokens, stated_confidence, category" in capsys.readouterr().out
    for words, said in (
        (["--learn"], "given with --table"),
        (["--learn", "--table", "builtin:bbh-like"], "this one has none"),
        (["--learn", "--table", "builtin:effort-like"], "of a cascade"),
    ):
        assert main(["validate", *words]) == 2
        assert said in capsys.readouterr().err
