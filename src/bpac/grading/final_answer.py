r"""The final answer of a text: the complete answer that the text marks, or all of the text if it marks none.

1. An answer is never shortened: everything after the mark belongs to it, to the end of the text.
2. Only three parts are left out: paragraphs headed "Explanation:" after a marked answer, the announcement of a code
   block ("Here is the code:") and a polite ending ("I hope this helps!").
3. A text whose answer is ambiguous has no final answer (``None``): several boxes, a box with a sign or words around it
   that change its meaning, two marks that disagree, "see above".
"""

import re

from bpac.grading.text.boxes import Box, found_boxes, joined_boxes
from bpac.grading.text.normalized_text import without_markup
from bpac.grading.text.stated_answers import chosen_option, points_elsewhere, stated_answers

_EXPLANATION = re.compile(
    r"\n[ \t]*\n[*_#> \t]{0,8}(?:explanation|reason(?:ing)?|rationale|justification|why)[ \t*_]{0,8}:", re.IGNORECASE
)
_GOODBYE = re.compile(
    r"(?:I[ \t]+)?hope[ \t]+(?:this|that|it)[ \t]+helps\b[^\n.!?]*[.!]?"
    r"|(?:please[ \t]+)?(?:let[ \t]+me[ \t]+know[ \t]+if[ \t]+you|feel[ \t]+free[ \t]+to[ \t]+ask)\b[^\n.!?]*[.!]?",
    re.IGNORECASE,
)
# Words that announce a code block without describing it; "code to avoid" describes it.
_LEAD_IN = re.compile(
    r"(?:(?:sure|certainly|of[ \t]course)[!,.:]?[ \t])?here(?:['’]s|[ \t]is|[ \t]are)"
    r"(?:[ \t](?:the|your|a|an|my|one|simple|complete|full|final|requested|python|javascript|js|sql|bash|shell|json"
    r"|code|function|script|program|query|snippet|solution|implementation|answer|output|result|example|what|you|asked|for)){1,8}"
    r":[ \t]*\n\s*(?=```|~~~|\{)",
    re.IGNORECASE,
)
_HASHES = re.compile(r"####[ \t]{0,8}[-−\\$€£]{0,3}\d")
_DENIES = re.compile(r"\b(?:not|never|no|wrong|incorrect|without|except|unless|nor)\b|n't\b", re.IGNORECASE)
# Words after which the box is the whole answer. After other words ("minus", "about", "at least") it may not be.
_BEFORE_BOX = re.compile(
    r"(?:(?<![!<>~≈≠])=|[:：是为]|\b(?:is|are|was|be|get|gets|find|have|gives|obtain|yields"
    r"|becomes|equals|equal to|thus|so|hence"
    r"|therefore|answer|result|total|ist|sind|est|sont|es|son|è|é))\Z",
    re.IGNORECASE,
)
_OPENS_MATHEMATICS = re.compile(r"(?:[$* \t\n]|\\[(\[])+\Z")
# How many characters before a box are read.
_CONTEXT = 200


def final_answer(text: str) -> str | None:
    r"""The final answer of a text; ``None`` if it is ambiguous.

    Parameters
    ----------
    text: the model's answer without its reasoning.

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
    answer = without_markup(_without_explanation(last) if stated else last)
    if chosen and stated and answer.strip("()") != chosen:
        return None
    answer = chosen or answer
    if points_elsewhere(answer) or not all(_repeats(answer, statement) for statement in earlier):
        return None
    return without_markup(_without_lead_in(answer))


def _repeats(answer: str, earlier: str) -> bool:
    """Whether an earlier statement begins with the same answer, whatever follows it."""
    earlier = earlier.lstrip("*$`( \t\n")
    return earlier.startswith(answer) and not earlier[len(answer) : len(answer) + 2].strip(".,;:!*$`) \t\n")


def _after_hashes(text: str) -> str | None:
    """The number on a last line that begins with ``####``; ``None`` if other lines do too, since they are headings."""
    rest, _, last = text.rpartition("\n")
    if "\n####" in f"\n{rest}" or not _HASHES.match(last):
        return None
    return without_markup(last.removeprefix("####"))


def _boxed(text: str) -> str | None:
    """The contents of the only box, if nothing around the box changes its meaning."""
    groups = joined_boxes(text)
    if len(groups) != 1 or len(groups[0]) != len(found_boxes(text)):
        return None
    first, last = groups[0][0], groups[0][-1]
    if not _clean_before(text, first) or not _clean_after(text, last):
        return None
    answer = without_markup(", ".join(without_markup(box.inside(text)) for box in groups[0]))
    stated = stated_answers(text[: first.start])
    return answer if answer and all(_repeats(answer, statement) for statement in stated) else None


def _clean_before(text: str, box: Box) -> bool:
    before = text[max(0, box.start - _CONTEXT) : box.start]
    opens = _OPENS_MATHEMATICS.search(before)
    before = before[: opens.start()] if opens else before
    if not before or before[-1] in ".。":
        return not before or opens is not None
    # The answers "-\boxed{5}", "not \boxed{5}" and "2\boxed{5}" are not 5.
    sentence = re.split(r"[.!?\n]", before)[-1]
    return bool(_BEFORE_BOX.search(before)) and not _DENIES.search(sentence)


def _clean_after(text: str, box: Box) -> bool:
    r"""Whether only the end of the sentence follows a box: the answer "``\boxed{5}`` km" is not 5."""
    after = text[box.stop :].replace(r"\)", "", 1).replace(r"\]", "", 1)
    return not after.strip("$*. \t\n。")


def _without_goodbye(text: str) -> str:
    before, paragraph, last = text.rpartition("\n\n")
    return before.rstrip() if paragraph and before.strip() and _GOODBYE.fullmatch(last.strip()) else text


def _without_explanation(answer: str) -> str:
    """A stated answer without paragraphs headed "Explanation:", unless they contain a box."""
    found = _EXPLANATION.search(answer)
    return answer[: found.start()].rstrip() if found and not found_boxes(answer[found.end() :]) else answer


def _without_lead_in(text: str) -> str:
    found = _LEAD_IN.match(text)
    return text[found.end() :] if found else text
