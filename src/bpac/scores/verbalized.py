"""Verbalized confidence: the draft's model is asked to state its confidence in the last line of its answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpac.answer import Answer
from bpac.errors import NoScore
from bpac.scores.confidence_words import STATED_WORDS
from bpac.scores.score import Needs

SUFFIX = (
    "\n\nAfter your answer, add one last line of this form, where N is how likely your answer is to be correct, "
    "as a whole number from 0 to 100:\nConfidence: N%"
)
QUESTION = (
    "How likely is it that your last answer is correct? Reply with one line of this form and nothing else, where N is "
    "a whole number from 0 to 100:\nConfidence: N%"
)

# The gaps are bounded so that the search takes linear time. A range ("80–90 %") is not a confidence.
_CONFIDENCE = re.compile(
    r"confidence(?:\s+level)?[\s*_`:=]{0,9}(?:is\s+|of\s+)?[\s*_`~≈]{0,9}"
    r"(?P<number>\d{1,9}(?:[.,]\d{1,9})?)\s?(?P<unit>%|percent|/\s?10{1,2}\b)?"
    r"(?![\d%/]|[.,]\d|\s?(?:[-–—/]|to\b)\s?\d)",
    re.IGNORECASE,
)
_STATED = re.compile(f"{_CONFIDENCE.pattern}|{STATED_WORDS.pattern}", re.IGNORECASE)
_COLON = re.compile(r"confidence(?:\s+level)?[\s*_`]{0,9}[:=]", re.IGNORECASE)
_MARKS = " \t*_`#>-"


@dataclass(frozen=True, slots=True)
class Verbalized:
    r"""One minus the confidence that the draft states.

    >>> round(Verbalized()(Answer("42\nConfidence: 85%")), 6)
    0.15
    """

    @property
    def needs(self) -> Needs:
        """A request for the confidence at the end of the question."""
        return Needs(suffix=SUFFIX, question=QUESTION)

    def __call__(self, draft: Answer, samples: Sequence[Answer] = ()) -> float:
        """The uncertainty of the draft."""
        return 1.0 - stated_confidence(draft.confidence_text)


def stated_confidence(text: str) -> float:
    """The last confidence that a text states, as a fraction; ``NoScore`` if it states none.

    A number without a unit is a percentage, as the question asks for one, unless it has decimals and is at most 1.

    >>> [stated_confidence(f"Confidence: {number}") for number in ("85%", "85", "0.85", "8.5/10", "85/100")]
    [0.85, 0.85, 0.85, 0.85, 0.85]
    """
    found = None
    for found in _CONFIDENCE.finditer(text):  # noqa: B007  # the last one counts
        pass
    if found is None:
        raise NoScore(f"the draft states no confidence; it ends with {text[-60:]!r}")
    number = float(found["number"].replace(",", "."))
    unit = (found["unit"] or "").replace(" ", "").lower()
    is_fraction = not unit and number <= 1.0 and not found["number"].isdigit()
    confidence = number / {"/10": 10.0, "": 1.0 if is_fraction else 100.0}.get(unit, 100.0)
    if confidence > 1.0:
        raise NoScore(f"the draft states the confidence {found['number']}{unit}, which is more than 100%")
    return confidence


def without_confidence(text: str) -> str:
    r"""The text without the confidence that it states at its end, for callers who did not ask for one.

    That is a last line that begins with "confidence", or the end of the last line if that has a colon after the word: a
    sentence about a confidence is not what was asked for.

    >>> without_confidence("42\n\n**Confidence: 85%**"), without_confidence("42. Confidence: very likely")
    ('42', '42.')
    """
    rest, _, last = text.rstrip().rpartition("\n")
    found = None
    for found in _STATED.finditer(last):  # noqa: B007  # the last one counts
        pass
    if found is None:
        return text
    if last.lstrip(_MARKS).lower().startswith("confidence"):
        return rest.rstrip()
    ends = not last[found.end() :].strip(_MARKS + ".!)")
    if not ends or not _COLON.match(found[0]):
        return text
    # What is kept must be a beginning of the text: the tokens after it are cut off, too.
    return text[: len(text.rstrip()) - len(last) + found.start()].rstrip(_MARKS + "\n(")


def with_suffix(messages: Sequence[Mapping[str, Any]], suffix: str) -> list[dict[str, Any]]:
    """A copy of the messages with the suffix added to the last message of the user.

    >>> with_suffix([{"role": "user", "content": "6 · 7?"}], " Be brief.")
    [{'role': 'user', 'content': '6 · 7? Be brief.'}]
    """
    asked = [dict(message) for message in messages]
    for message in reversed(asked):
        if message.get("role") != "user":
            continue
        content = message.get("content")
        # Messages with images contain a list of parts.
        is_text = content is None or isinstance(content, str)
        message["content"] = (
            f"{content or ''}{suffix}" if is_text else [*(content or ()), {"type": "text", "text": suffix}]
        )
        return asked
    return [*asked, {"role": "user", "content": suffix.strip()}]
