r"""The final answer of a text: what the text itself marks as its answer, whole, or else all of the text.

1. An answer is never shortened: what follows its mark belongs to it, to the end of the text.
2. Only what says of itself that it is no part of the answer is left out: paragraphs headed "Explanation:" after a
   marked answer, the announcement of a block ("Here is the code:") and a polite ending ("I hope this helps!").
3. A text whose answer cannot be told for certain has none (``None``): several boxes, a box with a sign or words around
   it that change it, two marks that disagree, "see above".
"""

import re

from bpac.grading.text.boxes import Box, found_boxes, joined_boxes
from bpac.grading.text.cues import chosen_option, points_elsewhere, stated_answers
from bpac.grading.text.normal_text import unwrapped

_EXPLANATION = re.compile(
    r"\n[ \t]*\n[*_#> \t]{0,8}(?:explanation|reason(?:ing)?|rationale|justification|why)[ \t*_]{0,8}:", re.IGNORECASE
)
_GOODBYE = re.compile(
    r"(?:I[ \t]+)?hope[ \t]+(?:this|that|it)[ \t]+helps\b[^\n.!?]*[.!]?"
    r"|(?:please[ \t]+)?(?:let[ \t]+me[ \t]+know[ \t]+if[ \t]+you|feel[ \t]+free[ \t]+to[ \t]+ask)\b[^\n.!?]*[.!]?",
    re.IGNORECASE,
)
# Words that announce a block of code and say nothing of it; "code to avoid" is none.
_LEAD_IN = re.compile(
    r"(?:(?:sure|certainly|of[ \t]course)[!,.:]?[ \t])?here(?:['’]s|[ \t]is|[ \t]are)"
    r"(?:[ \t](?:the|your|a|an|my|one|simple|complete|full|final|requested|python|javascript|js|sql|bash|shell|json"
    r"|code|function|script|program|query|snippet|solution|implementation|answer|output|result|example|what|you|asked|for)){1,8}"
    r":[ \t]*\n\s*(?=```|~~~|\{)",
    re.IGNORECASE,
)
_HASHES = re.compile(r"####[ \t]{0,8}[-−\\$€£]{0,3}\d")
_DENIES = re.compile(r"\b(?:not|never|no|wrong|incorrect|without|except|unless|nor)\b|n't\b", re.IGNORECASE)
# Words after which a box stands for all that is said. After others ("minus", "about", "at least") it may not.
_BEFORE_BOX = re.compile(
    r"(?:(?<![!<>~≈≠])=|[:：是为]|\b(?:is|are|was|be|get|gets|find|have|gives|obtain|yields"
    r"|becomes|equals|equal to|thus|so|hence"
    r"|therefore|answer|result|total|ist|sind|est|sont|es|son|è|é))\Z",
    re.IGNORECASE,
)
_OPENS_MATHEMATICS = re.compile(r"(?:[$* \t\n]|\\[(\[])+\Z")
# How far back the words before a box are looked at.
_CONTEXT = 200


def final_answer(text: str) -> str | None:
    r"""What a text gives as its answer; ``None`` if that cannot be told for certain.

    Parameters
    ----------
    text: what was said, without the reasoning.

    >>> final_answer("It is near Lyon. So the answer is **St. Louis**."), final_answer("I would go with C.")
    ('St. Louis', 'C')
    >>> final_answer(r"\boxed{1} or rather \boxed{2}") is None
    True
    """
    text = _without_goodbye(text.strip())
    if found_boxes(text):
        return _boxed(text)
    if "\n####" in f"\n{text}" and (hashes := _after_hashes(text)):
        return hashes
    stated, chosen = stated_answers(text), chosen_option(text)
    *earlier, last = stated or [text]
    answer = unwrapped(_without_explanation(last) if stated else last)
    if chosen and stated and answer.strip("()") != chosen:
        return None
    answer = chosen or answer
    if points_elsewhere(answer) or not all(_repeated(answer, said) for said in earlier):
        return None
    return unwrapped(_without_lead_in(answer))


def _repeated(answer: str, earlier: str) -> bool:
    """Whether an earlier statement gives the same answer, whatever is said after it."""
    said = earlier.lstrip("*$`( \t\n")
    return said.startswith(answer) and not said[len(answer) : len(answer) + 2].strip(".,;:!*$`) \t\n")


def _after_hashes(text: str) -> str | None:
    """The number on a last line that begins with ``####``, where no other line does: those would be headings."""
    rest, _, last = text.rpartition("\n")
    if "\n####" in f"\n{rest}" or not _HASHES.match(last):
        return None
    return unwrapped(last.removeprefix("####"))


def _boxed(text: str) -> str | None:
    """What is in the only box, if nothing around it changes what it says."""
    groups = joined_boxes(text)
    if len(groups) != 1 or len(groups[0]) != len(found_boxes(text)):
        return None
    first, last = groups[0][0], groups[0][-1]
    if not _clean_before(text, first) or not _clean_after(text, last):
        return None
    answer = unwrapped(", ".join(unwrapped(box.inside(text)) for box in groups[0]))
    stated = stated_answers(text[: first.start])
    return answer if answer and all(_repeated(answer, said) for said in stated) else None


def _clean_before(text: str, box: Box) -> bool:
    before = text[max(0, box.start - _CONTEXT) : box.start]
    opens = _OPENS_MATHEMATICS.search(before)
    before = before[: opens.start()] if opens else before
    if not before or before[-1] in ".。":
        return not before or opens is not None
    # "-\boxed{5}", "not \boxed{5}" and "2\boxed{5}" are other answers than 5.
    sentence = re.split(r"[.!?\n]", before)[-1]
    return bool(_BEFORE_BOX.search(before)) and not _DENIES.search(sentence)


def _clean_after(text: str, box: Box) -> bool:
    r"""Whether nothing but the end of its sentence follows a box: ``\boxed{5}`` with "km" behind it is not 5."""
    after = text[box.stop :].replace(r"\)", "", 1).replace(r"\]", "", 1)
    return not after.strip("$*. \t\n。")


def _without_goodbye(text: str) -> str:
    before, paragraph, last = text.rpartition("\n\n")
    return before.rstrip() if paragraph and before.strip() and _GOODBYE.fullmatch(last.strip()) else text


def _without_explanation(said: str) -> str:
    """A stated answer without the paragraphs that say of themselves that they explain it, if they state no other."""
    found = _EXPLANATION.search(said)
    return said[: found.start()].rstrip() if found and not found_boxes(said[found.end() :]) else said


def _without_lead_in(text: str) -> str:
    found = _LEAD_IN.match(text)
    return text[found.end() :] if found else text
