"""Agreement and confidence: a second answer to the same question, combined with the confidence that the answers state.

Either of the two alone has few values and misses what the other sees: a model may repeat a mistake, and it may be sure
of an answer that it does not give again.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bpac.answer import Answer
from bpac.arguments import whole
from bpac.errors import NoScore
from bpac.grading.equality import same_final
from bpac.grading.text.json_equality import comparable, parse_comparable
from bpac.scores.confidence_words import QUESTION, SUFFIX, confidence_in_words
from bpac.scores.score import Needs
from bpac.scores.verbalized import without_confidence


@dataclass(frozen=True, slots=True)
class AgreementAndConfidence:
    r"""One minus the mean of two numbers: the share of further answers that agree, and the confidence stated in words.

    The confidence is the mean over the draft and the further answers that agree with it and state one. Answers whose
    agreement cannot be decided count as different. Tool calls agree if names and arguments do.

    Parameters
    ----------
    samples: number of further answers to request (default: 1). Failed requests are left out; at least one must succeed.

    >>> score = AgreementAndConfidence()
    >>> score(Answer("42\nConfidence: likely"), [Answer("42\nConfidence: about even")])
    0.2
    >>> score(Answer("42\nConfidence: likely"), [Answer("41\nConfidence: very likely")])
    0.65
    """

    samples: int = 1

    def __post_init__(self) -> None:
        whole(self.samples, "samples", 1)

    @property
    def needs(self) -> Needs:
        """Further answers, and a request for the confidence at the end of the question."""
        return Needs(samples=self.samples, suffix=SUFFIX, question=QUESTION)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        if not samples:
            raise NoScore("there are no further answers to compare the draft with: request some from the model")
        stated = [confidence_in_words(draft.confidence_text)]
        agreeing = [sample for sample in samples if agree(draft, sample)]
        for sample in agreeing:
            try:
                stated.append(confidence_in_words(sample.confidence_text))
            except NoScore:
                continue
        return round(1.0 - (len(agreeing) / len(samples) + fmean(stated)) / 2.0, 12)


def agree(one: Answer, other: Answer) -> bool:
    """Whether two answers certainly say the same, apart from the confidence that they state.

    >>> agree(Answer("The answer is 42."), Answer("42")), agree(Answer("Paris, perhaps"), Answer("Paris"))
    (True, False)
    """
    if one.tool_calls or other.tool_calls:
        try:
            ours, theirs = (sorted(map(_comparable_call, answer.tool_calls), key=repr) for answer in (one, other))
        except (ValueError, TypeError, KeyError, AttributeError):
            return False
        return ours == theirs
    return same_final(without_confidence(one.text), without_confidence(other.text)) is True


def _comparable_call(call: Any) -> tuple[str, Hashable]:
    arguments = call["function"].get("arguments") or "{}"
    return str(call["function"]["name"]), (
        parse_comparable(arguments) if isinstance(arguments, str) else comparable(arguments)
    )
