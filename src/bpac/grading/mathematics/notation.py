r"""One notation for mathematics: typed formulas and TeX abbreviations, spelled out for a parser.

This does not decide whether two formulas are equal. It only rewrites a formula so that the parser understands it.
"""

import re

from bpac.grading.text.boxes import closing_braces

_SYMBOLS = str.maketrans(
    {"−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "÷": "/", "π": r"\pi ", "∞": r"\infty ", "°": r"^\circ ",
     "∪": r"\cup ", "≤": r"\le ", "≥": r"\ge ", "±": r"\pm ", "²": "^2", "³": "^3", "\u00a0": " ",
     "\u202f": " ", "\u2009": " "}
)  # fmt: skip
_SPELT = [
    (re.compile(r"√\s{0,3}(?:\(([^()√]*)\)|\{([^{}√]*)\}|(\w+))"), lambda m: rf"\sqrt{{{m[1] or m[2] or m[3]}}}"),
    (re.compile(r"(?<![\\a-zA-Z])sqrt\s{0,3}\(([^()]*)\)"), lambda m: rf"\sqrt{{{m[1]}}}"),
    (re.compile(r"(?<![\\a-zA-Z])(pi|infty|sin|cos|tan|cot|sec|csc|log|ln)(?![a-zA-Z])"), lambda m: rf"\{m[1]} "),
    (re.compile(r"(?<![\\a-zA-Z])(?:infinity|inf|oo)(?![a-zA-Z])"), lambda m: r"\infty "),
    (re.compile(r"\\[dtc]frac"), lambda m: r"\frac"),
    (re.compile(r"\\(?:displaystyle|textstyle|boldsymbol|mathbf|bf)\b"), lambda m: ""),
    (re.compile(r"\\(?:left|right|bigl|bigr|Bigl|Bigr|big|Big)(?![a-z])"), lambda m: ""),
    (re.compile(r"\\(?:text|mbox|textbf|mathrm|textrm)\s+\{"), lambda m: r"\text{"),
    (re.compile(r"\\text(?:bf|rm|it)?\{\(?(\d+)\)?\}"), lambda m: m[1]),
    # 0.00 becomes 0, because math-verify would treat the decimal as equal to every tiny number.
    (re.compile(r"(?<![\d.])0*\.0+(?!\d)"), lambda m: "0"),
    # math-verify ignores degrees (30^\circ is 30), so degrees that change the value are written as radians.
    (re.compile(r"(\\(?:sin|cos|tan|cot|sec|csc)\s{0,3}[({]?\s{0,3})(\d+(?:\.\d+)?)\s{0,3}\^\s{0,3}\{?\\circ\s{0,3}\}?"),
     lambda m: rf"{m[1]}(\frac{{{m[2]}\pi}}{{180}})"),
    # Thousands separators: 1,\!234 and 1{,}234 and 1\,234.
    (re.compile(r"(?<=\d)(?:,\s*\\!\s*|\{,\}|\\[,;:]\s*)(?=\d{3}(?!\d))"), lambda m: ""),
    (re.compile(r"\\[!,;:]|\\ |~"), lambda m: " "),
    (re.compile(r"(?<!\s)\s+(?:and|or)\s+(?![^{}]{0,99}\})"), lambda m: ", "),
    (re.compile(r",\s*,"), lambda m: ","),
]  # fmt: skip
_FRACTION = re.compile(r"\\frac(?![a-zA-Z])")
_ARGUMENT = re.compile(r"\s*(\{|\\[a-zA-Z]+|[0-9a-zA-Z])")
_ADVERB = re.compile(
    r"^(?:approximately|about|exactly|simply|just|only|equal to|therefore|thus|then|indeed)\s+", re.IGNORECASE
)
_QUANTITY = re.compile(r"^(?P<value>.*[\d})])\s+(?P<unit>[A-Za-z][A-Za-z ,.'/-]*)$")
_GROUPED = re.compile(r"^-?\d{1,3}(?:,\d{3})+$")
_BASE = re.compile(r"^(?P<digits>-?[0-9A-Z.]+)_\{?(?P<base>\d{1,3})\}?$")


def spelled_out(text: str) -> str:
    r"""The expression without dollar signs, abbreviations and typography.

    >>> spelled_out(r"$-\dfrac1{2x}$.")
    '-\\frac{1}{2x}'
    >>> spelled_out("√3/2 and 1,\\!000")
    '\\sqrt{3}/2, 1000'
    """
    text = re.sub(r"(?<!\\)\$|\\\(|\\\)|\\\[|\\\]", "", text.translate(_SYMBOLS)).strip()
    text = _ADVERB.sub("", text).strip().rstrip(".,;").removeprefix("=").strip()
    for pattern, spelling in _SPELT:
        text = pattern.sub(spelling, text)
    return _braced(text).strip()


def _braced(text: str) -> str:
    r"""Every ``\frac12`` as ``\frac{1}{2}``: some parsers read ``\frac1{2x}`` as a half times x."""
    if "\\frac" not in text:
        return text
    closing = closing_braces(text)
    parts, done = [], 0
    for fraction in _FRACTION.finditer(text):
        start = fraction.end()
        for _ in range(2):
            argument = _ARGUMENT.match(text, start)
            if not argument:
                break
            if argument[1] == "{":
                # Fractions inside the braces are found by a later step of the outer loop.
                start = closing.get(argument.start(1), -1) + 1
                if not start:
                    break
            else:
                start = argument.end()
                if argument.start() >= done:
                    parts += [text[done : argument.start()], f"{{{argument[1]}}}"]
                    done = start
    return "".join(parts) + text[done:]


def readings(text: str) -> tuple[str, ...]:
    r"""The possible readings of a spelled-out answer.

    >>> readings("70,110")                         # one number, or a list of two
    ('70,110', '70, 110')
    >>> readings("5 apples")
    ('5 apples', '5\\text{ apples}')
    """
    found = [text]
    if _GROUPED.match(text):
        found.append(text.replace(",", ", "))
    if quantity := _QUANTITY.match(text):
        found.append(rf"{quantity['value']}\text{{ {quantity['unit']}}}")
    if "%" in text:
        # The answer to a question for a percentage may leave out the sign.
        found.append(text.replace("\\%", "").replace("%", ""))
    words = re.fullmatch(r"\(?\\(?:text|mbox|textbf|mathrm)\{\s?\(?([^{}()]*)\)?\s?\}\)?", text)
    if words:
        found.append(words[1].strip())
    return tuple(found)


def number_base(text: str) -> tuple[str, str | None]:
    """A number and the base in its subscript, if there is one.

    >>> number_base("152A_{11}"), number_base("1202")
    (('152A', '11'), ('1202', None))
    """
    found = _BASE.match(text)
    return (found["digits"], found["base"]) if found else (text, None)
