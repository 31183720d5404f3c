"""Self-consistency: sample further answers and compare them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from bpac.answer import Answer
from bpac.arguments import one_of, whole
from bpac.errors import NoScore, SettingsError
from bpac.scores.score import Needs

Equal = Callable[[str, str], bool]


def same_words(one: str, other: str) -> bool:
    r"""Whether two answers have the same words, ignoring case and spacing.

    >>> same_words("Forty  two\n", "forty two")
    True
    """
    return one.casefold().split() == other.casefold().split()


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """The share of further answers to the same question that disagree.

    Parameters
    ----------
    samples: number of further answers to request (default: 4). Failed requests are left out of the share; at least one
        must succeed.
    against: ``draft`` (default): the share of the further answers that differ from the draft. ``majority``: the share
        of all answers, including the draft, outside the largest group that agrees.
    equal: whether the texts of two answers agree; it should be an equivalence relation (default: ``same_words``).

    >>> score = SelfConsistency()
    >>> score(Answer("42"), [Answer("42"), Answer("41"), Answer("42"), Answer("7")])
    0.5
    """

    samples: int = 4
    against: Literal["draft", "majority"] = "draft"
    equal: Equal = same_words

    def __post_init__(self) -> None:
        whole(self.samples, "samples", 1)
        one_of(self.against, "against", ("draft", "majority"))
        if not callable(self.equal):
            raise SettingsError(f"equal must be a function of two texts, got {self.equal!r}")

    @property
    def needs(self) -> Needs:
        """Further answers to the same question."""
        return Needs(samples=self.samples)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        if not samples:
            raise NoScore("there are no further answers to compare the draft with: request some from the model")
        if self.against == "draft":
            return sum(not self.equal(draft.text, sample.text) for sample in samples) / len(samples)
        texts = [draft.text, *(sample.text for sample in samples)]
        groups: list[list[str]] = []
        for text in texts:
            group = next((group for group in groups if self.equal(group[0], text)), None)
            if group is None:
                groups.append([text])
            else:
                group.append(text)
        return 1.0 - max(len(group) for group in groups) / len(texts)
