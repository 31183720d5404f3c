"""Graders on labelled pairs: different answers are never called equal."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.grader_accuracy.benchmark_pairs import load_questions
from bpac.grader_accuracy.generated_pairs import CALLS, TEXTS, generated_pairs
from bpac.grader_accuracy.labelled_pair import LabelledPair, VariantsGenerator
from bpac.grader_accuracy.rates import MeasuredGrader, VerdictCounts, measured_graders
from bpac.grading.text.answer_text import AnswerText, Verdict, first_sentence, normalized_words
from bpac.scores import same_words

BENCH = Path(__file__).parents[2].parent / "shared" / "bench"
GRADERS = {grader.name: grader for grader in measured_graders()}


def first_sentence_grader(draft: str, expert: str) -> Verdict:
    """A wrong grader, which cuts a marked answer at its first full stop."""
    ours, theirs = (AnswerText.read(text).marked() for text in (draft, expert))
    if not ours and not theirs:
        return same_words(draft, expert)
    one, other = (
        normalized_words(first_sentence(marked[0] if marked else text))
        for marked, text in ((ours, draft), (theirs, expert))
    )
    return one == other


@pytest.mark.parametrize("name", ["final", "text", "tool_call"])
def test_no_different_answers_are_called_equal(name: str) -> None:
    """None of 20,000 pairs of different answers, so with 95 % confidence fewer than 0.015 % of all such pairs."""
    counts = GRADERS[name].count(20_000, same=False)
    assert counts.examples == ()
    assert (counts.pairs, counts.false) == (20_000, 0)
    assert counts.to_json()["upper_95"] < 0.00015


def test_no_different_formulas_are_called_equal() -> None:
    """The same for mathematics, on a smaller sample, because formulas are compared in other processes."""
    counts = GRADERS["mathematics"].count(1_500, same=False)
    assert (counts.examples, counts.pairs) == ((), 1_500)


@pytest.mark.parametrize(
    ("name", "unknown"), [("final", 0.15), ("text", 0.0), ("tool_call", 0.0), ("mathematics", 0.1)]
)
def test_equal_answers_are_seldom_unknown(name: str, unknown: float) -> None:
    """Equal answers are never called different, and few of them cannot be compared."""
    counts = GRADERS[name].count(1_000, same=True)
    assert counts.examples == ()
    assert counts.unknown <= unknown * counts.pairs


def test_a_grader_that_cuts_answers_short_is_detected() -> None:
    """A wrong grader calls many different pairs equal: a negative control."""
    pairs = list(generated_pairs(TEXTS, 2_000, same=False))
    wrong = Counter(pair.kind for pair in pairs if first_sentence_grader(pair.draft, pair.expert))
    assert sum(wrong.values()) > 100
    assert {"names", "lists", "code", "shared parts"} <= set(wrong)


@pytest.mark.parametrize("kinds", [TEXTS, CALLS])
def test_pairs_depend_only_on_the_seed(kinds: Mapping[str, VariantsGenerator]) -> None:
    """The same seed gives the same pairs, another seed other pairs, with the requested label and of every kind."""
    pairs = list(generated_pairs(kinds, 200, same=False, seed=1))
    assert pairs == list(generated_pairs(kinds, 200, same=False, seed=1))
    assert pairs != list(generated_pairs(kinds, 200, same=False, seed=2))
    assert {pair.kind for pair in pairs} == set(kinds)
    assert all(not pair.same and pair.draft != pair.expert for pair in pairs)


def test_rates_have_exact_bounds() -> None:
    """Wrong and unknown verdicts are counted separately, and the upper bound is the Clopper–Pearson bound."""
    verdicts: list[Verdict] = [True, False, None, False]

    def cases(count: int, same: bool) -> list[tuple[LabelledPair, object]]:
        return [
            (LabelledPair("x", str(at), "", same), lambda verdict=verdict: verdict)
            for at, verdict in enumerate(verdicts)
        ]

    grader = MeasuredGrader("any", cases)  # type: ignore[arg-type]
    different, same = grader.count(4, same=False), grader.count(4, same=True)
    assert (different.false, different.unknown, same.false, same.unknown) == (1, 1, 2, 1)
    assert [pair.draft for pair in different.examples] == ["0"]
    # 1 - (1 - p)^4 - 4 p (1 - p)^3 = 0.95 has the solution 0.7514.
    assert different.to_json()["upper_95"] == pytest.approx(0.7514, abs=1e-4)
    assert VerdictCounts().to_json() == {"pairs": 0}


def test_the_command_prints_rates(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the rates of the chosen graders as a table or as JSON."""
    assert main(["graders", "--pairs", "40", "--grader", "final", "--grader", "tool_call", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["pairs"], list(report["graders"])) == (40, ["final", "tool_call"])
    assert report["graders"]["final"]["different"] | {"unknown": 0, "unknown_rate": 0} == {
        "pairs": 40, "false": 0, "rate": 0.0, "upper_95": pytest.approx(0.0722, abs=1e-4), "unknown": 0,
        "unknown_rate": 0, "examples": [],
    }  # fmt: skip
    assert main(["graders", "--pairs", "40", "--grader", "text"]) == 0
    assert "| text | 40 | 0 | 7.216% |" in capsys.readouterr().out


def test_without_the_extra_other_graders_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without math-verify the other graders are measured, and a message names the missing extra."""
    monkeypatch.setitem(sys.modules, "math_verify", None)
    assert main(["graders", "--pairs", "20", "--json"]) == 0
    printed = capsys.readouterr()
    assert list(json.loads(printed.out)["graders"]) == ["final", "text", "tool_call"]
    assert "mathematics is not measured: this needs math-verify" in printed.err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [(["--pairs", "0"], "--pairs must be at least 1"), (["--grader", "guess"], "--grader 'guess' is not known"),
    (["--bench", "."], "none of")],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong option is named in one line on standard error, and the exit code is 2."""
    assert main(["graders", *arguments]) == 2
    printed = capsys.readouterr().err
    assert error in printed
    assert printed.count("\n") == 1


@pytest.mark.skipif(not BENCH.is_dir(), reason="the folder with the benchmark files does not exist")
@pytest.mark.parametrize("name", ["final", "text", "benchmark mmlu-pro", "benchmark bbh", "benchmark gsm8k"])
def test_no_wrong_verdict_on_benchmark_answers(name: str) -> None:
    """Answers to other questions are never called equal, and correct answers in another form never different."""
    (grader,) = [grader for grader in measured_graders(load_questions(BENCH)) if grader.name == name]
    assert grader.count(400, same=False).examples == ()
    assert grader.count(400, same=True).examples == ()
