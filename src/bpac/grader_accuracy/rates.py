"""Rates of false verdicts: how often a grader calls different answers equal, and equal ones different."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.betting.bounds.fixed_sample import clopper_pearson_upper
from bpac.grader_accuracy.from_benchmarks import graded_pairs, reference_pairs
from bpac.grader_accuracy.made_up import CALLS, TEXTS, made_up
from bpac.grader_accuracy.pair import Draw, LabelledPair
from bpac.grading.equality import same_final, same_text
from bpac.grading.mathematics.results import same_result
from bpac.grading.text.reply import Verdict
from bpac.losses import Equal, ToolCallLoss

# The bounds hold with this confidence.
CONFIDENCE = 0.95
EXAMPLES = 5
Case = tuple[LabelledPair, Callable[[], Verdict]]


@dataclass(frozen=True, slots=True)
class Counts:
    """The verdicts on pairs that all have one label.

    Parameters
    ----------
    pairs: how many there were.
    false: how many verdicts were wrong.
    unknown: how many pairs could not be compared.
    examples: the first wrong verdicts.
    """

    pairs: int = 0
    false: int = 0
    unknown: int = 0
    examples: tuple[LabelledPair, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The counts, with rates and their exact upper bounds."""
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
class Measured:
    """A grader, and the pairs on which it is measured.

    Parameters
    ----------
    name: what it is called.
    cases: so many pairs with that label, and how the grader grades each.
    """

    name: str
    cases: Callable[[int, bool], Iterable[Case]] = field(repr=False)

    def count(self, pairs: int, same: bool) -> Counts:
        """The verdicts on so many pairs that are the same, or different."""
        total = false = unknown = 0
        examples: list[LabelledPair] = []
        for pair, grade in self.cases(pairs, same):
            verdict = grade()
            total += 1
            unknown += verdict is None
            if verdict is (not same):
                false += 1
                examples += [pair] if len(examples) < EXAMPLES else []
        return Counts(total, false, unknown, tuple(examples))


def measured_graders(questions: Mapping[str, Sequence[Question]] | None = None, seed: int = 0) -> list[Measured]:
    """Every grader that compares answers, with made-up pairs and those of the benchmarks that are given.

    Parameters
    ----------
    questions: of benchmarks, by name.
    seed: of the pairs.
    """
    given = questions or {}
    # Whether two texts are the same is asked of whole texts only: others say the same in other words.
    whole = {kind: TEXTS[kind] for kind in ("sentences", "shared parts")}

    def texts(equal: Equal, same_kinds: Mapping[str, Draw] = TEXTS) -> Callable[[int, bool], Iterator[Case]]:
        def cases(count: int, same: bool) -> Iterator[Case]:
            pairs: Iterable[LabelledPair] = made_up(same_kinds if same else TEXTS, count, same, seed)
            if same_kinds is TEXTS or not same:
                more = (reference_pairs(name, asked, count, same, seed) for name, asked in given.items())
                pairs = chain(pairs, *more)
            return _compared(equal, pairs)

        return cases

    def calls(count: int, same: bool) -> Iterator[Case]:
        return _compared(_same_calls, made_up(CALLS, count, same, seed))

    def graded(name: str) -> Callable[[int, bool], Iterator[Case]]:
        return lambda count, same: graded_pairs(name, given[name], count, same, seed)

    return [
        Measured("final", texts(same_final)),
        Measured("text", texts(same_text, whole)),
        Measured("mathematics", texts(same_result)),
        Measured("tool_call", calls),
        *(Measured(f"benchmark {name}", graded(name)) for name in given),
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
