"""The built-in tables follow their distributions."""

from functools import partial

import numpy as np
import pytest

from bpac.errors import InputError
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.builtin import BENCHMARKS, HARD_FIRST, SCORES, builtin_table, open_table
from bpac.replay.tables.builtin_tasks import HARD, STEEP, TASKS


def test_unknown_tables_scores_and_impossible_laws_are_refused() -> None:
    """A name or a score that is not known, and distributions that are none, raise an error."""
    for attempt in (
        partial(open_table, "builtin:chess"),
        partial(open_table, "builtin:math-like", "mood"),
        partial(open_table, "builtin:tasks-like", "perplexity"),
        partial(PowerLaw, power=-1.0),
        partial(PowerLaw, weights=(0.5,)),
        partial(PowerLaw, sizes=(2.0,)),
        partial(PowerLaw, span=(0.5, 0.5)),
    ):
        with pytest.raises(InputError):
            attempt()


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_the_true_risk_agrees_with_a_large_sample(name: str) -> None:
    """The closed form of the risk agrees with a large sample at every decile of the score, to four standard errors."""
    law = BENCHMARKS[name].law
    uncertainty, loss = law.draw(400_000, np.random.default_rng(1))
    for threshold in np.quantile(uncertainty, np.linspace(0.1, 1.0, 10)):
        accepted = loss * (uncertainty < threshold)
        assert abs(accepted.mean() - law.risk(float(threshold))) < 4.0 * accepted.std() / np.sqrt(len(loss)) + 1e-9


@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_the_risk_of_a_table_is_that_of_its_law(name: str) -> None:
    """At every decile of the score the losses of the table are those of the law to within two losses."""
    benchmark, table = BENCHMARKS[name], builtin_table(name)
    assert len(table) == benchmark.rows
    for threshold in benchmark.law.uncertainty(np.linspace(0.1, 1.0, 10)):
        losses = float(np.sum(table.loss * (table.uncertainty < threshold)))
        slack = 2.0 if benchmark.law.sizes == (1.0,) else 0.1 * losses + 2.0
        assert abs(losses - benchmark.rows * benchmark.law.risk(float(threshold))) <= slack


@pytest.mark.parametrize("score", SCORES[1:])
@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_other_scores_rank_the_same_losses(name: str, score: str) -> None:
    """With another score losses and lengths of answers are the same, and the risk is that of the score's law."""
    benchmark, table, other = BENCHMARKS[name], builtin_table(name), builtin_table(name, score=score)
    for column in ("loss", "draft_tokens", "expert_tokens"):
        assert np.array_equal(getattr(table, column), getattr(other, column))
    law = benchmark.law_of(score)
    for threshold in law.uncertainty(np.linspace(0.1, 1.0, 10)):
        losses = float(np.sum(other.loss * (other.uncertainty < threshold)))
        slack = 3.0 if law.sizes == (1.0,) else 0.1 * losses + 3.0
        assert abs(losses - benchmark.rows * law.risk(float(threshold))) <= slack


def test_mixed_tables_combine_two_benchmarks() -> None:
    """One begins with a few hard questions; the other is an easy benchmark followed by a hard one."""
    hard_first = builtin_table("bbh-then-magpie")
    assert len(hard_first) == HARD_FIRST + 4379
    assert hard_first.uncertainty[:HARD_FIRST].max() < hard_first.uncertainty[HARD_FIRST:].min()
    shift = builtin_table("mmlu-pro-then-bbh")
    assert shift.loss[:1500].mean() < shift.loss[1500:].mean()


def test_the_table_of_tasks_follows_its_law() -> None:
    """Tasks have their shares, the same seed draws the same table, and each feature says something about losses."""
    tasks, table = TASKS["tasks-like"], builtin_table("tasks-like", rows=20_000)
    again, other = builtin_table("tasks-like"), builtin_table("tasks-like", seed=1)
    assert len(again) == tasks.rows
    assert again.loss.tolist() == builtin_table("tasks-like").loss.tolist() != other.loss.tolist()
    of_task = table.features["category"]
    for name, task in tasks.tasks.items():
        drawn = of_task == name
        assert drawn.mean() == pytest.approx(task.share)
        difficulty = task.difficulty + np.random.default_rng(5).standard_normal(200_000)
        expected = float(np.mean(1.0 / (1.0 + np.exp(-STEEP * (difficulty - HARD)))))
        error = np.sqrt(expected * (1.0 - expected) / drawn.sum())
        assert abs(table.loss[drawn].mean() - expected) < 4.0 * error + 0.005
        wrong = drawn & (table.loss == 1.0)
        known = table.features["stated_confidence"] != None  # noqa: E711  # element by element
        for column, sign in (
            (table.uncertainty, 1.0),
            (table.draft_tokens, 1.0),
            (np.where(known, table.features["stated_confidence"], 0.0).astype(float), -1.0),
        ):
            assert column is not None
            assert sign * (column[wrong & known].mean() - column[drawn & ~wrong & known].mean()) > 0.0
