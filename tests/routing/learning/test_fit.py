"""The fit of a learned score, and the frozen model."""

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.errors import InputError
from bpac.routing.learning import logistic
from bpac.routing.learning.features import checked_features
from bpac.routing.learning.fit import Regression, fit
from bpac.routing.learning.logistic import product, sum_over_samples
from bpac.routing.learning.model import FrozenModel, OwnScore
from bpac.routing.learning.samples import MOST_SAMPLES, Sample, Samples
from bpac.routing.learning.scorer import scorer
from tests.routing.learning.drafts import drafts

features = st.one_of(st.none(), st.floats(-1e300, 1e300), st.sampled_from(["law", "physics", "x" * 64]))
samples = st.lists(
    st.builds(Sample, st.tuples(st.floats(0, 1), features, features), st.floats(0, 1), st.floats(0.01, 1.0)),
    min_size=5,
    max_size=40,
)


def sampled(count: int, seed: int = 1) -> list[Sample]:
    """Samples of drafts, all audited."""
    return [Sample((u, *known), loss, 1.0) for u, known, loss in drafts(count, seed)]


@given(samples, st.tuples(st.floats(0, 1), features, features))
def test_any_samples_give_a_score_for_any_draft(rows: list[Sample], draft: tuple[Any, ...]) -> None:
    """Constant, missing, huge and mixed features, equal losses and separable ones: there is a score in [0, 1]."""
    model = fit(rows, ridge=4.0)
    assert 0.0 <= model.score(draft) <= 1.0
    again = FrozenModel(json.loads(json.dumps(model.to_json())))
    assert again == model
    assert again.score(draft) == model.score(draft)
    assert 0.0 <= Regression(rows, 4.0).promised_gain(0.05) < 1e6


def test_the_fit_finds_what_losses_depend_on() -> None:
    """Long drafts of a hard task have a larger score than short ones of an easy task, on fresh drafts."""
    model = fit(sampled(2000), ridge=1.0)
    fresh = sampled(2000, seed=2)
    order = np.argsort([model.score(sample.features) for sample in fresh])
    losses = np.array([sample.loss for sample in fresh])[order]
    assert losses[:500].mean() < 0.09
    assert losses[-500:].mean() > 0.35
    assert Regression(sampled(2000), 1.0).promised_gain(0.1) > 0.5


def test_noise_promises_little() -> None:
    """Features that say nothing have an estimated gain near 0."""
    rng = np.random.default_rng(0)
    noise = [Sample((u, x, "a"), float(rng.random() < u / 2), 1.0) for u, x in rng.random((2000, 2)).tolist()]
    assert Regression(noise, 4.0).promised_gain(0.05) < 0.1


def test_samples_count_by_the_inverse_of_their_propensity() -> None:
    """A sample that was audited with probability 1/4 counts like four that were audited for certain."""
    rows = [Sample((u,), float(u > 0.6), 1.0 if u < 0.5 else 0.25) for u in np.linspace(0, 1, 41).tolist()]
    four = [sample._replace(propensity=1.0) for sample in rows for _ in range(1 if sample.propensity == 1.0 else 4)]
    weights = np.array([1.0 / sample.propensity for sample in rows])
    # The ridge is weighed against as many samples as there would be if all had the same weight.
    scale = weights.sum() / np.square(weights).sum()
    one, other = fit(rows, ridge=scale), fit(four, ridge=1.0)
    for u in (0.1, 0.5, 0.9):
        assert one.score((u,)) == pytest.approx(other.score((u,)), abs=2e-3)


def test_the_minimum_is_a_minimum() -> None:
    """No weight can be changed without the penalised log-loss rising: here for one binary feature, in closed form."""
    rows = [Sample((float(i % 2),), float(i % 2 and i % 10 != 1), 1.0) for i in range(200)]
    model = fit(rows, ridge=1e-6)
    assert model.score((0.0,)) == pytest.approx(0.0, abs=1e-3)
    assert model.score((1.0,)) == pytest.approx(0.8, abs=1e-2)


def test_a_feature_separating_losses_from_wins_gets_a_finite_weight() -> None:
    """Without the ridge the weight would be infinite."""
    rows = [Sample((i / 100,), float(i >= 50), 1.0) for i in range(100)]
    model = fit(rows, ridge=1.0)
    assert 0.0 < model.score((0.0,)) < 0.1
    assert 0.9 < model.score((1.0,)) < 1.0


def test_extreme_log_odds_give_0_and_1() -> None:
    """A model may say so with any certainty."""
    term = {"knots": [0.0, 5e-324, 1.0], "values": [-99.0, 0.0, 99.0], "words": {}, "missing": 0.0}
    model = FrozenModel({"intercept": 0.0, "terms": [term]})
    assert (model.score((-1.0,)), model.score((2.0,)), model.score((0.0,))) == (0.0, 1.0, 0.0)
    assert model != term


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"intercept": 0.0},
        {"intercept": float("nan"), "terms": []},
        {"intercept": True, "terms": []},
        {"intercept": 0.0, "terms": [], "more": 1},
        {"intercept": 0.0, "terms": [{"knots": [1.0, 1.0], "values": [0.0, 0.0], "words": {}, "missing": 0.0}]},
        {"intercept": 0.0, "terms": [{"knots": [1.0], "values": [], "words": {}, "missing": 0.0}]},
        {"intercept": 0.0, "terms": [{"knots": [], "values": [], "words": {"x" * 65: 1.0}, "missing": 0.0}]},
    ],
)
def test_what_is_no_model_is_refused(data: Any) -> None:
    """A damaged journal cannot give scores."""
    with pytest.raises(InputError, match="not a learned score"):
        FrozenModel(data)


def test_features_are_given_by_name_or_in_order() -> None:
    """Numbers become floats; what is missing is none."""
    names = ("length", "task", "sure")
    assert checked_features({"length": 3, "sure": True}, names) == (3.0, None, 1.0)
    assert checked_features([np.float64(0.5), "law", None], names) == (0.5, "law", None)
    assert checked_features(None, names) == (None, None, None)
    assert checked_features((1.0, "zürich", None), names) == (1.0, "zürich", None)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"length": float("nan")}, "length must be a finite number"),
        ({"length": float("inf")}, "length must be a finite number"),
        ({"length": 10**400}, "length must be a finite number"),
        ({"length": [1]}, "length must be a finite number"),
        ((float("nan"), "law"), "length must be a finite number"),
        ((1.0, "x" * 65), "at most 64 characters"),
        ({"task": "x" * 65}, "at most 64 characters"),
        ({"task": "\ud800"}, "UTF-8"),
        ({"width": 1.0}, "does not know the feature 'width'"),
        ((1.0,), "one for each"),
        ("ab", "one for each"),
        (7, "one for each"),
    ],
)
def test_features_that_cannot_be_used_are_refused(given: Any, what: str) -> None:
    """The error names the feature and says what is wrong."""
    with pytest.raises(InputError, match=what):
        checked_features(given, ("length", "task"))


def test_a_router_that_learns_nothing_takes_no_features() -> None:
    """Otherwise they would be dropped without a word."""
    with pytest.raises(InputError, match="learns no score"):
        checked_features({"length": 1.0}, ())


def test_samples_are_limited_in_number() -> None:
    """The earliest go; an outcome that replaces another does not count twice."""
    kept = Samples()
    for step in range(MOST_SAMPLES + 5):
        kept.add(step, Sample((0.5,), 1.0, 1.0))
    kept.add(MOST_SAMPLES, Sample((0.5,), 0.0, 1.0))
    assert (kept.count, kept.losses) == (MOST_SAMPLES + 5, MOST_SAMPLES + 4)
    assert len(kept.in_order()) == MOST_SAMPLES


@pytest.mark.parametrize("kinds", ["", "o", "m", "mm", "mo", "om", "mmm", "oom", "mom"])
def test_models_score_together_as_each_does_alone_to_the_same_bits(kinds: str) -> None:
    """Also where their knots differ, one knows nothing of a feature, is none (o), or predicts a loss of 0 or 1."""
    dice = random.Random(5)
    for _ in range(20):
        models = [
            _drawn_model(dice, dice.choice((0.0, -60.0, 60.0, 3.0))) if kind == "m" else OwnScore() for kind in kinds
        ]
        together = scorer(models, features=3)
        terms = [term for model in models for term in (model.to_json() or {"terms": []})["terms"]]
        numbers = [knot for term in terms for knot in term["knots"]]
        for _ in range(30):
            values = [dice.choice([*numbers, dice.uniform(-3, 3), 1e300, -1e300, None]) for _ in range(2)]
            known = (dice.random(), *values, dice.choice(("a", "b", "c", None)))
            assert together(known[0], known[1:]) == (known[0], *[model.score(known) for model in models])


@pytest.mark.parametrize("kinds", ["", "o", "m", "mm"])
@pytest.mark.parametrize(
    "given",
    [
        (float("nan"), "law", None),
        (float("inf"), "law", None),
        (-float("inf"), "law", None),
        (-1.1e300, "law", None),
        (1, "law", None),
        (True, "law", None),
        (np.float64(0.5), "law", None),
        (0.5, "x" * 65, None),
        (0.5, "\ud800", None),
        (0.5, "law", b"law"),
        (0.5, "law"),
        [0.5, "law", None],
        {"length": 0.5},
        None,
    ],
)
def test_features_that_need_a_closer_look_get_no_score(kinds: str, given: Any) -> None:
    """Whether or not a model has a term for them: no score is computed from what was not checked."""
    dice = random.Random(6)
    models = [_drawn_model(dice, 0.0) if kind == "m" else OwnScore() for kind in kinds]
    assert scorer(models, features=3)(0.5, given) is None
    assert scorer(models, features=3)(0.5, (0.5, "law", None)) is not None


def _drawn_model(dice: random.Random, intercept: float) -> FrozenModel:
    """A model of a score, two numbers and a word, some of which it may know nothing of."""
    terms: list[dict[str, Any]] = []
    for kind in ("number", "number", "number", "word"):
        term: dict[str, Any] = {"knots": [], "values": [], "words": {}, "missing": 0.0}
        if kind == "number" and dice.random() < 0.8:
            term["knots"] = sorted({round(dice.uniform(-2, 2), 1) for _ in range(dice.randrange(1, 6))})
            term["values"] = [dice.uniform(-3, 3) for _ in term["knots"]]
        elif kind == "word" and dice.random() < 0.8:
            term |= {"words": {"a": 1.5, "b": dice.uniform(-3, 3)}, "missing": dice.uniform(-1, 1)}
        terms.append(term)
    return FrozenModel({"intercept": intercept, "terms": terms})


def test_a_fit_that_does_not_converge_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a number of steps what was reached is used: any model keeps the promise."""
    monkeypatch.setattr(logistic, "NEWTON_STEPS", 1)
    model, samples_of_two = fit(sampled(300), ridge=1.0), sampled(50, seed=2)
    assert all(0.0 <= model.score(sample.features) <= 1.0 for sample in samples_of_two)


def test_products_are_computed_in_parts_that_one_thread_computes() -> None:
    """With a vector and with a matrix, and at once where there are many columns."""
    rng = np.random.default_rng(0)
    for samples, width in ((1, 1), (700, 3), (900, 99), (30, 130)):
        columns, right = rng.random((samples, width)), rng.random((width, 2))
        assert product(columns, right) == pytest.approx(columns @ right)
        assert product(columns, right[:, 0]) == pytest.approx(columns @ right[:, 0])
        weights = rng.random((samples, 2))
        assert sum_over_samples(columns, weights) == pytest.approx(columns.T @ weights)
        assert sum_over_samples(columns, weights[:, 0]) == pytest.approx(columns.T @ weights[:, 0])
