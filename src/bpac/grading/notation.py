r"""One notation for mathematics: what people type and TeX abbreviates, spelt out for a parser.

This decides nothing about equality; it only writes the same expression so that the parser reads it as meant.
"""

import re

_SYMBOLS = str.maketrans(
    {"−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "÷": "/", "π": r"\pi ", "∞": r"\infty ", "°": r"^\circ ",
     "∪": r"\cup ", "≤": r"\le ", "≥": r"\ge ", "±": r"\pm ", "²": "^2", "³": "^3", "\u00a0": " ",
     "\u202f": " ", "\u2009": " "}
)  # fmt: skip
_SPELT = [
    (re.compile(r"√\s*\(([^()]*)\)|√\s*\{([^{}]*)\}|√\s*(\w+)"), lambda m: rf"\sqrt{{{m[1] or m[2] or m[3]}}}"),
    (re.compile(r"(?<![\\a-zA-Z])sqrt\s*\(([^()]*)\)"), lambda m: rf"\sqrt{{{m[1]}}}"),
    (re.compile(r"(?<![\\a-zA-Z])(pi|infty|sin|cos|tan|cot|sec|csc|log|ln)(?![a-zA-Z])"), lambda m: rf"\{m[1]} "),
    (re.compile(r"(?<![\\a-zA-Z])(?:infinity|inf|oo)(?![a-zA-Z])"), lambda m: r"\infty "),
    (re.compile(r"\\[dtc]frac"), lambda m: r"\frac"),
    (re.compile(r"\\(?:displaystyle|textstyle|boldsymbol|mathbf|bf)\b"), lambda m: ""),
    (re.compile(r"\\(?:left|right|bigl|bigr|Bigl|Bigr|big|Big)(?![a-z])"), lambda m: ""),
    (re.compile(r"\\(?:text|mbox|textbf|mathrm|textrm)\s+\{"), lambda m: r"\text{"),
    (re.compile(r"\\text(?:bf|rm|it)?\{\(?(\d+)\)?\}"), lambda m: m[1]),
    # A rounded nothing is nothing: as a decimal it would equal every tiny number.
    (re.compile(r"(?<![\d.])0*\.0+(?!\d)"), lambda m: "0"),
    # Degrees are dropped elsewhere (30^\circ is 30), but not where they change the value.
    (re.compile(r"(\\(?:sin|cos|tan|cot|sec|csc)\s*[({]?\s*)(\d+(?:\.\d+)?)\s*\^\s*\{?\\circ\s*\}?"),
     lambda m: rf"{m[1]}(\frac{{{m[2]}\pi}}{{180}})"),
    # A thousands separator is any of 1,\!234 and 1{,}234 and 1\,234.
    (re.compile(r"(?<=\d)(?:,\s*\\!\s*|\{,\}|\\[,;:]\s*)(?=\d{3}(?!\d))"), lambda m: ""),
    (re.compile(r"\\[!,;:]|\\ |~"), lambda m: " "),
    (re.compile(r"\s+(?:and|or)\s+(?![^{]*\})"), lambda m: ", "),
    (re.compile(r",\s*,"), lambda m: ","),
]  # fmt: skip
_ARGUMENT = r"\s*(\{|\\[a-zA-Z]+|[0-9a-zA-Z])"
_FRACTION = re.compile(rf"\\frac{_ARGUMENT}")
_ADVERB = re.compile(
    r"^(?:approximately|about|exactly|simply|just|only|equal to|therefore|thus|then|indeed)\s+", re.IGNORECASE
)
_QUANTITY = re.compile(r"^(?P<value>.*?[\d})])\s+(?P<unit>[A-Za-z][A-Za-z ,.'/-]*)$")
_GROUPED = re.compile(r"^-?\d{1,3}(?:,\d{3})+$")
_BASE = re.compile(r"^(?P<digits>-?[0-9A-Z.]+)_\{?(?P<base>\d+)\}?$")


def spelt_out(text: str) -> str:
    r"""The expression without dollar signs, abbreviations and typography.

    >>> spelt_out(r"$-\dfrac1{2x}$.")
    '-\\frac{1}{2x}'
    >>> spelt_out("√3/2 and 1,\\!000")
    '\\sqrt{3}/2, 1000'
    """
    text = re.sub(r"(?<!\\)\$|\\\(|\\\)|\\\[|\\\]", "", text.translate(_SYMBOLS)).strip()
    text = _ADVERB.sub("", text).strip().rstrip(".,;").removeprefix("=").strip()
    for pattern, spelling in _SPELT:
        text = pattern.sub(spelling, text)
    return _braced(text).strip()


def _braced(text: str) -> str:
    r"""Every ``\frac12`` as ``\frac{1}{2}``: some parsers read ``\frac1{2x}`` as a half times x."""
    done = 0
    while found := _FRACTION.search(text, done):
        start, parts = found.end() - len(found[1]), []
        for _ in range(2):
            argument = re.compile(_ARGUMENT).match(text, start)
            if not argument:
                return text
            if argument[1] != "{":
                parts.append(argument[1])
                start = argument.end()
                continue
            close = _closing(text, argument.end())
            if close is None:
                return text
            parts.append(text[argument.end() : close])
            start = close + 1
        head = text[: found.start()] + r"\frac{"
        text = f"{head}{parts[0]}}}{{{parts[1]}}}{text[start:]}"
        # The arguments may hold fractions of their own.
        done = len(head)
    return text


def _closing(text: str, start: int) -> int | None:
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return None


def readings(text: str) -> tuple[str, ...]:
    r"""The ways in which a spelt-out answer can be meant.

    >>> readings("70,110")                         # one number, or a list of two
    ('70,110', '70, 110')
    >>> readings("5 apples")
    ('5 apples', '5\\text{ apples}')
    """
    ways = [text]
    if _GROUPED.match(text):
        ways.append(text.replace(",", ", "))
    if quantity := _QUANTITY.match(text):
        ways.append(rf"{quantity['value']}\text{{ {quantity['unit']}}}")
    if "%" in text:
        # Whoever is asked for a percentage may leave the sign out.
        ways.append(text.replace("\\%", "").replace("%", ""))
    words = re.fullmatch(r"\(?\\(?:text|mbox|textbf|mathrm)\{\s*\(?([^{}()]*)\)?\s*\}\)?", text)
    if words:
        ways.append(words[1].strip())
    return tuple(ways)


def number_base(text: str) -> tuple[str, str | None]:
    """A number and the base written under it, if any.

    >>> number_base("152A_{11}"), number_base("1202")
    (('152A', '11'), ('1202', None))
    """
    found = _BASE.match(text)
    return (found["digits"], found["base"]) if found else (text, None)
