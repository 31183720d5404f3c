"""Whether two texts give the same answer: yes, no or unknown (``None``), which a router counts as a loss of 1.

1. Complete answers are compared. Nothing is cut off, and a common beginning does not make two answers equal.
2. JSON is compared as JSON, numbers by their value, options by their letter, code and lists line by line.
3. The result is unknown if the answers differ only in case or spacing, or if one answer contains the other.
"""

import re
from decimal import Decimal

from bpac.grading.final_answer import final_answer
from bpac.grading.text.answer_text import AnswerText, Verdict, too_long
from bpac.grading.text.json_equality import parse_comparable
from bpac.grading.text.normalized_text import normalized_lines, without_markup

# The version of these rules: losses graded by different versions must not be mixed in one game.
RULES = 3
_OPTION = re.compile(r"(?:(?:option|choice|answer)[ ])?(?:\(([A-Z])\)|([A-Z])[.):]?)", re.IGNORECASE)
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(?P<json>[^`]*)\n```", re.IGNORECASE)
# A sign, digits and a unit. A single comma may separate thousands or decimals, so it is not accepted.
_NUMBER = re.compile(
    r"(?P<before>\\?[$€£]|)(?P<sign>[-−]?)(?P<whole>0|[1-9]\d{0,99}|[1-9]\d{0,2}(?:,\d{3}){2,30}|[1-9]\d{0,2}(?:\{,\}\d{3}){1,30})"
    r"(?:\.0{1,30}|(?P<decimals>\.\d{0,99}[1-9]))?"
    r"(?P<unit>(?: ?\\?[%°])?|(?: ?[A-Za-zµΩ°²³/^]{1,20}(?: [A-Za-zµΩ°²³/^]{1,20}){0,2})?)"
)
_DIGITS = re.compile(r"[-+−]?[\d.,' {}]+")
FORMULA = re.compile(r"[\\^/=*√²³]|\d[a-z(]")
_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
_WORD = re.compile(r"\w+")
# Texts with more words than this may say the same in other words, so a difference proves nothing, except in lists.
_FEW_WORDS = 8
_ITEM = re.compile(r" {0,99}(?:-|\d{1,4}\.) ")
# A capital first letter is ignored only in words of at least this length: mW and MW are different units.
_INITIAL = 4


def same_final(draft: str, expert: str) -> Verdict:
    r"""Whether two texts have the same final answer: the answer they mark, or all of the text if they mark none.

    >>> same_final("So it is \\boxed{42}.", "The answer is 42."), same_final("41", "42")
    (True, False)
    >>> same_final("The answer is St. Louis.", "The answer is St. Petersburg.")
    False
    >>> same_final("Paris.", "Paris, or else Lyon.") is None
    True
    """
    finals = final_answers_to_compare(draft, expert)
    return same_answer(*finals) if isinstance(finals, tuple) else finals


def final_answers_to_compare(draft: str, expert: str) -> tuple[str, str] | Verdict:
    """The two final answers, or the verdict if there is nothing left to compare."""
    if too_long(draft, expert):
        return None
    replies = [AnswerText.read(text) for text in (draft, expert)]
    if not all(reply.finished and reply.text for reply in replies):
        return None
    if replies[0].text == replies[1].text:
        return True
    ours, theirs = (final_answer(reply.text) for reply in replies)
    return None if ours is None or theirs is None else (ours, theirs)


def same_text(draft: str, expert: str) -> Verdict:
    r"""Whether two texts are the same except for formatting: line ends, spacing within lines, bold type.

    >>> same_text("Forty  two\n", "Forty two"), same_text("Forty two", "Forty one")
    (True, False)
    >>> same_text("CO", "Co") is None
    True
    """
    if too_long(draft, expert):
        return None
    replies = [AnswerText.read(text) for text in (draft, expert)]
    if not all(reply.finished and reply.text for reply in replies):
        return None
    one, other = (normalized_lines(reply.text) for reply in replies)
    if one == other:
        return True
    return None if _squeezed(one) == _squeezed(other) else False


def same_answer(ours: str, theirs: str) -> Verdict:
    """Whether two final answers are the same.

    >>> same_answer("1,234,567", "1234567.0"), same_answer("3.10", "3.1"), same_answer('{"a": 1}', '{"a":1.0}')
    (True, None, True)
    """
    if not ours or not theirs:
        return None
    if ours == theirs:
        return True
    verdicts = (compare(ours, theirs) for compare in (_as_json, _as_options, _as_numbers, _as_yes_or_no))
    for comparable, verdict in verdicts:
        if comparable:
            return verdict
    return _as_texts(ours, theirs)


def _as_json(ours: str, theirs: str) -> tuple[bool, Verdict]:
    texts = [(found["json"] if (found := _FENCED.fullmatch(answer)) else answer).strip() for answer in (ours, theirs)]
    if not any(text.startswith(("{", "[")) and text.endswith(("}", "]")) for text in texts):
        return False, None
    try:
        one, other = (parse_comparable(text) for text in texts)
    except ValueError:
        # Without quotes they are mostly formulas, such as (0, 1] or {1, 2}, and are compared as text.
        return any('"' in text for text in texts), None
    return True, one == other


def _as_options(ours: str, theirs: str) -> tuple[bool, Verdict]:
    found = [_OPTION.fullmatch(answer) for answer in (ours, theirs)]
    letters = [match[1] or match[2] for match in found if match]
    if len(letters) < 2:
        return False, None
    if letters[0] == letters[1]:
        return True, True
    # Lower-case letters may be variables.
    return True, None if letters[0].upper() == letters[1].upper() else False


def _as_numbers(ours: str, theirs: str) -> tuple[bool, Verdict]:
    found = [_NUMBER.fullmatch(answer) for answer in (ours, theirs)]
    one, other = found
    if one is None or other is None:
        # The same digits with other separators: 1,000 means 1000 in some countries and 1 in others.
        return all(map(_DIGITS.fullmatch, (ours, theirs))) and _bare(ours) == _bare(theirs), None
    units = [(match["before"].lstrip("\\"), match["unit"].replace("\\", "").strip()) for match in (one, other)]
    values = [
        Decimal((match["sign"] and "-") + re.sub(r"[{,}]", "", match["whole"]) + (match["decimals"] or ""))
        for match in (one, other)
    ]
    if units[0] != units[1]:
        return True, None  # 5 km equals 5000 m
    return True, values[0] == values[1]


def _bare(number: str) -> str:
    return re.sub(r"\D", "", number).strip("0")


def _as_yes_or_no(ours: str, theirs: str) -> tuple[bool, Verdict]:
    # Only the first letter may be a capital: NO is also nitric oxide.
    words = [_lower_first(answer.strip(" .!")) for answer in (ours, theirs)]
    if not all(word in _YES | _NO for word in words):
        return False, None
    if words[0] == words[1]:
        return True, True
    return True, None if len(_YES & set(words)) != 1 else False


def _as_texts(ours: str, theirs: str) -> Verdict:
    one, other = normalized_lines(ours), normalized_lines(theirs)
    if one == other or (
        len(one) == len(other) == 1 and _same_but_initial(without_markup(one[0]), without_markup(other[0]))
    ):
        return True
    if _squeezed(one) == _squeezed(other):
        return None
    words = [_WORD.findall(answer.casefold()) for answer in (ours, theirs)]
    if any(line.startswith("```") for line in one + other):
        # The same code may be labelled with another language or with none.
        return None if _without_languages(one) == _without_languages(other) else False
    if any(map(FORMULA.search, (ours, theirs))):
        return None  # equal formulas can be written in many ways
    few = all(len(found) <= _FEW_WORDS for found in words) or all(map(_ITEM.match, one + other))
    contained = set(words[0]) <= set(words[1]) or set(words[1]) <= set(words[0])
    return None if contained or not few else False


def _same_but_initial(one: str, other: str) -> bool:
    """Whether two answers differ only in whether a normal first word is capitalized; genotypes (Aabb) are excluded."""
    if one == other:
        return True
    if one[1:] != other[1:] or one[:1].lower() != other[:1].lower():
        return False
    word = one.partition(" ")[0].lower()
    rest = one.partition(" ")[0][1:]
    return len(word) >= _INITIAL and word.isalpha() and rest.islower() and word[0] != word[1]


def _without_languages(lines: tuple[str, ...]) -> list[str]:
    return ["```" if line.startswith("```") else line for line in lines]


def _lower_first(word: str) -> str:
    return word[:1].lower() + word[1:]


def _squeezed(lines: tuple[str, ...]) -> str:
    return "".join("".join(lines).split()).casefold()
