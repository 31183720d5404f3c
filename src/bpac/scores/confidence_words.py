"""Confidence in words: a draft's model says how sure it is with one of a few expressions, such as "very likely".

Which number stands for which expression does not matter to the promise: a threshold only compares drafts, and any
values in the same order accept the same drafts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bpac.answer import Answer
from bpac.errors import NoScore
from bpac.scores.score import Needs

# The expressions that are asked for, from the surest to the least sure.
ASKED = {
    "almost certain": 0.95,
    "very likely": 0.85,
    "likely": 0.7,
    "better than even": 0.6,
    "about even": 0.5,
    "unlikely": 0.3,
    "very unlikely": 0.15,
    "almost no chance": 0.05,
}
# What models write instead of them.
EXPRESSIONS = ASKED | {
    "certain": 0.98,
    "highly likely": 0.9,
    "very good chance": 0.8,
    "probable": 0.7,
    "probably": 0.7,
    "even": 0.5,
    "even chance": 0.5,
    "probably not": 0.25,
    "highly unlikely": 0.1,
    "almost impossible": 0.02,
}
_LIST = ", ".join(ASKED)
SUFFIX = (
    "\n\nAfter your answer, add one last line of this form, where WORDS says how likely your answer is to be correct "
    f"and is one of: {_LIST}.\nConfidence: WORDS"
)
QUESTION = (
    "How likely is it that your last answer is correct? Reply with one line of this form and nothing else, where WORDS "
    f"is one of: {_LIST}.\nConfidence: WORDS"
)
# The expression must end its line: "likely not correct" is not "likely".
STATED_WORDS = re.compile(
    r"confidence(?:\s+level)?[\s*_`:=]{0,9}(?:is\s+)?[\s*_`\"'“]{0,9}"
    rf"(?P<words>{'|'.join(sorted(map(re.escape, EXPRESSIONS), key=len, reverse=True))})"
    r"(?=[ \t*_`\"'”.!)]{0,9}(?:\n|$))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class VerbalizedWords:
    r"""One minus the confidence that the draft states in words.

    >>> round(VerbalizedWords()(Answer("42\nConfidence: very likely")), 6)
    0.15
    """

    @property
    def needs(self) -> Needs:
        """A request for the confidence at the end of the question."""
        return Needs(suffix=SUFFIX, question=QUESTION)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        return 1.0 - confidence_in_words(draft.confidence_text)


def confidence_in_words(text: str) -> float:
    """The last confidence that a text states in words, as a fraction; ``NoScore`` if it states none.

    >>> [confidence_in_words(f"Confidence: {words}") for words in ("almost certain", "**Likely**.", "about even")]
    [0.95, 0.7, 0.5]
    """
    found = None
    for found in STATED_WORDS.finditer(text):  # noqa: B007  # the last one counts
        pass
    if found is None:
        raise NoScore(f"the draft states no confidence in words; it ends with {text[-60:]!r}")
    return EXPRESSIONS[found["words"].lower()]
