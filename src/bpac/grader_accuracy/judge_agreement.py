"""How often a judge prefers the answer that is known to be better, and whether that is more often than by chance."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from bpac.betting.bounds.fixed_sample import clopper_pearson_upper
from bpac.errors import InputError

# A judge that tosses a coin prefers the better answer this often.
CHANCE = 0.5
# One minus the confidence of the interval.
ALPHA = 0.05
BETTER_THAN_CHANCE = "agrees better than chance"
TOO_WEAK = "too weak to judge: its agreement is not above chance"


class PairOutcome(StrEnum):
    """What a judge's marks say about a pair, asked once in each order."""

    AGREES = "agrees"  # the better answer has the higher mark both times
    DISAGREES = "disagrees"  # the worse answer has the higher mark both times
    TIES = "ties"  # equal marks both times
    CHANGES = "changes"  # the two orders give different verdicts
    UNREADABLE = "unreadable"  # a mark is missing


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """The marks of a pair.

    Parameters
    ----------
    fault: what is wrong with the worse answer.
    marks: for each of the two orders, the marks of the better and of the worse answer; none if a reply had no mark.

    >>> JudgedPair("rude", ((9.0, 3.0), (8.0, 3.0))).outcome
    <PairOutcome.AGREES: 'agrees'>
    """

    fault: str
    marks: tuple[tuple[float, float], tuple[float, float]] | None = None

    @property
    def outcome(self) -> PairOutcome:
        """What the marks say."""
        if self.marks is None:
            return PairOutcome.UNREADABLE
        first, second = ((better > worse) - (better < worse) for better, worse in self.marks)
        if first != second:
            return PairOutcome.CHANGES
        return (PairOutcome.TIES, PairOutcome.AGREES, PairOutcome.DISAGREES)[first]


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """The agreement of a judge with known preferences.

    Parameters
    ----------
    model: the name of the judge's model.
    prompt: the messages of every request, with ``{question}``, ``{answer}`` and ``{code}`` where those are inserted.
    judged: the marks of every pair.
    body: the other fields of every request (default: none).
    seconds: the duration of the measurement (default: 0).

    >>> judged = tuple(JudgedPair("rude", ((9.0, 3.0), (8.0, 3.0))) for _ in range(10))
    >>> found = JudgeAgreement("m", (), judged)
    >>> found.verdict, [round(bound, 3) for bound in found.interval]
    ('agrees better than chance', [0.692, 1.0])
    """

    model: str
    prompt: tuple[Mapping[str, str], ...]
    judged: tuple[JudgedPair, ...]
    body: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def outcomes(self) -> Counter[PairOutcome]:
        """The number of pairs with each outcome."""
        return Counter(pair.outcome for pair in self.judged)

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.judged)

    @property
    def unreadable(self) -> int:
        """The number of pairs for which a mark is missing."""
        return self.outcomes[PairOutcome.UNREADABLE]

    @property
    def answered(self) -> int:
        """The number of pairs with all marks."""
        return self.pairs - self.unreadable

    @property
    def agreed(self) -> int:
        """The number of pairs whose better answer has the higher mark in both orders."""
        return self.outcomes[PairOutcome.AGREES]

    @property
    def agreement(self) -> float | None:
        """The share of answered pairs whose better answer has the higher mark in both orders; none without any."""
        return self.agreed / self.answered if self.answered else None

    @property
    def interval(self) -> tuple[float, float]:
        """The exact confidence interval of the agreement (Clopper–Pearson, 95 %)."""
        if not self.answered:
            return 0.0, 1.0
        missed = clopper_pearson_upper(self.answered - self.agreed, self.answered, ALPHA / 2)
        return 1.0 - missed, clopper_pearson_upper(self.agreed, self.answered, ALPHA / 2)

    @property
    def changed_share(self) -> float | None:
        """The share of answered pairs whose verdict changes with the order; none without any answered pair."""
        return self.outcomes[PairOutcome.CHANGES] / self.answered if self.answered else None

    @property
    def better_than_chance(self) -> bool:
        """Whether the whole confidence interval is above one half; ties and changed verdicts are no agreement."""
        return self.interval[0] > CHANCE

    @property
    def verdict(self) -> str:
        """The same in words."""
        return BETTER_THAN_CHANCE if self.better_than_chance else TOO_WEAK

    def summary(self) -> list[str]:
        """The verdict and the figures behind it, as lines of text."""
        is_judge = "" if self.better_than_chance else "is "
        unreadable = f"no readable mark: {self.unreadable} of {self.pairs} pairs"
        if self.agreement is None or self.changed_share is None:
            return [f"{self.model} {is_judge}{self.verdict}", unreadable]
        low, high = self.interval
        return [
            f"{self.model} {is_judge}{self.verdict}",
            f"higher mark for the better answer: {self.agreed} of {self.answered} pairs, {self.agreement:.1%} "
            f"(95 % confidence interval {low:.1%} to {high:.1%}; chance 50 %)",
            f"higher mark for the worse answer: {self.outcomes[PairOutcome.DISAGREES]} pairs",
            f"equal marks: {self.outcomes[PairOutcome.TIES]} pairs",
            f"verdict changes with the order: {self.outcomes[PairOutcome.CHANGES]} pairs, {self.changed_share:.1%}",
            unreadable,
        ]

    def by_fault(self) -> dict[str, dict[str, int]]:
        """For each fault of the worse answers, the number of pairs, of answered ones and of those that agree."""
        found: dict[str, dict[str, int]] = {}
        for pair in self.judged:
            counts = found.setdefault(pair.fault, {"pairs": 0, "answered": 0, "agreed": 0})
            counts["pairs"] += 1
            counts["answered"] += pair.outcome is not PairOutcome.UNREADABLE
            counts["agreed"] += pair.outcome is PairOutcome.AGREES
        return found

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; ``from_json`` reads what was measured and computes the rest again."""
        return {
            "model": self.model,
            "verdict": self.verdict,
            "better_than_chance": self.better_than_chance,
            "pairs": self.pairs,
            "answered": self.answered,
            "agreement": self.agreement,
            "interval_95": list(self.interval),
            "changed_share": self.changed_share,
            "outcomes": {outcome.value: self.outcomes[outcome] for outcome in PairOutcome},
            "by_fault": self.by_fault(),
            "seconds": self.seconds,
            "body": dict(self.body),
            "prompt": [dict(message) for message in self.prompt],
            "judged": [asdict(pair) for pair in self.judged],
        }

    @classmethod
    def from_json(cls, value: Any) -> "JudgeAgreement":
        """The result that ``to_json`` wrote; ``InputError`` for anything else.

        >>> found = JudgeAgreement("m", (), (JudgedPair("rude"),))
        >>> JudgeAgreement.from_json(found.to_json()) == found
        True
        """
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise InputError(f"not the measured agreement of a judge: {error}") from error
