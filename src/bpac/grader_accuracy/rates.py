"""Error rates of graders: how often a grader calls different answers equal, or equal answers different."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.betting.bounds.fixed_sample import clopper_pearson_upper
from bpac.grader_accuracy.benchmark_pairs import graded_pairs, reference_pairs
from bpac.grader_accuracy.generated_pairs import CALLS, TEXTS, generated_pairs
from bpac.grader_accuracy.labelled_pair import LabelledPair, VariantsGenerator
from bpac.grading.equality import same_final, same_text
from bpac.grading.mathematics.exact_equivalence import same_result
from bpac.grading.text.answer_text import Verdict
from bpac.losses import Equal, ToolCallLoss

# The confidence of the upper bounds.
CONFIDENCE = 0.95
EXAMPLES = 5
Case = tuple[LabelledPair, Callable[[], Verdict]]


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """The verdicts of a grader on pairs with the same label.

    Parameters
    ----------
    pairs: number of pairs.
    false: number of wrong verdicts.
    unknown: number of pairs that the grader could not compare.
    examples: the first few pairs with a wrong verdict.
    """

    pairs: int = 0
    false: int = 0
    unknown: int = 0
    examples: tuple[LabelledPair, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The counts and their rates, with an exact upper bound on the rate of wrong verdicts."""
        if not self.pairs:
            return {"pairs": 0}
        return {
            "pairs": self.pairs,
            "false": self.false,
            "rate": self.false / self.pairs,
            "upper_95": clopper_pearson_upper(self.false, self.pairs, 1.0 - CONFIDENCE),
            "unknown": self.unknown,
            "unknown_rate": self.unknown / self.pairs,
            "examples": [[pair.kind, pair.draft, pair.expert] for pair in self.examples],
        }


@dataclass(frozen=True, slots=True)
class MeasuredGrader:
    """A grader, and the pairs on which it is measured.

    Parameters
    ----------
    name: the grader's name.
    cases: generates a number of pairs with a label; each comes with a function that grades it.
    """

    name: str
    cases: Callable[[int, bool], Iterable[Case]] = field(repr=False)

    def count(self, pairs: int, same: bool) -> VerdictCounts:
        """Count the verdicts on a number of pairs with a label.

        Parameters
        ----------
        pairs: number of pairs to generate, from each source.
        same: the label of the pairs.
        """
        total = false = unknown = 0
        examples: list[LabelledPair] = []
        for pair, grade in self.cases(pairs, same):
            verdict = grade()
            total += 1
            unknown += verdict is None
            if verdict is (not same):
                false += 1
                examples += [pair] if len(examples) < EXAMPLES else []
        return VerdictCounts(total, false, unknown, tuple(examples))


def measured_graders(questions: Mapping[str, Sequence[Question]] | None = None, seed: int = 0) -> list[MeasuredGrader]:
    """Every grader that compares answers, with generated pairs and pairs from the given benchmarks.

    Parameters
    ----------
    questions: questions by benchmark (default: none).
    seed: random seed of the pairs (default: 0).
    """
    given = questions or {}
    # Equal pairs for the grader of whole texts: in the other kinds, equal answers are phrased in different words.
    whole = {kind: TEXTS[kind] for kind in ("sentences", "shared parts")}

    def texts(
        equal: Equal, same_kinds: Mapping[str, VariantsGenerator] = TEXTS
    ) -> Callable[[int, bool], Iterator[Case]]:
        def cases(count: int, same: bool) -> Iterator[Case]:
            pairs: Iterable[LabelledPair] = generated_pairs(same_kinds if same else TEXTS, count, same, seed)
            if same_kinds is TEXTS or not same:
                more = (reference_pairs(name, asked, count, same, seed) for name, asked in given.items())
                pairs = chain(pairs, *more)
            return _compared(equal, pairs)

        return cases

    def calls(count: int, same: bool) -> Iterator[Case]:
        return _compared(_same_calls, generated_pairs(CALLS, count, same, seed))

    def graded(name: str) -> Callable[[int, bool], Iterator[Case]]:
        return lambda count, same: graded_pairs(name, given[name], count, same, seed)

    return [
        MeasuredGrader("final", texts(same_final)),
        MeasuredGrader("text", texts(same_text, whole)),
        MeasuredGrader("mathematics", texts(same_result)),
        MeasuredGrader("tool_call", calls),
        *(MeasuredGrader(f"benchmark {name}", graded(name)) for name in given),
    ]


def _compared(equal: Equal, pairs: Iterable[LabelledPair]) -> Iterator[Case]:
    for pair in pairs:
        yield pair, _comparison(equal, pair)


def _comparison(equal: Equal, pair: LabelledPair) -> Callable[[], Verdict]:
    return lambda: equal(pair.draft, pair.expert)


def _same_calls(draft: str, expert: str) -> Verdict:
    answers = [
        Answer("", tool_calls=({"function": {"name": "f", "arguments": arguments}},)) for arguments in (draft, expert)
    ]
    return ToolCallLoss()(answers[0], answers[1]) == 0.0
