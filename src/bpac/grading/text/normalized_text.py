r"""Normalized text: texts that differ only in formatting (spacing, bold, typographic quotes) become equal.

Nothing that can carry meaning changes: case, digits, signs, brackets, indentation and the order of lines stay.
Characters are composed (Unicode NFC) but never replaced by compatible ones (NFKC), because x² is not x2.
"""

import re
import textwrap
import unicodedata

_TYPOGRAPHY = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u200b": None, "\ufeff": None})
# Bold words, but neither 2**3**4 nor f(**options).
_BOLD = re.compile(r"(?<![\w*)\]])\*\*(?=[^\s*])([^*\n]+)(?<=[^\s*])\*\*(?![\w*(\[])")
# A bullet, but not the sign of a number.
_BULLET = re.compile(r"^(\s*)[*•-][ \t]+(?=[^\s\d.,])")
_NUMBERED = re.compile(r"^(\s*\d{1,4})[.)][ \t]+(?=\S)")
_FENCE = re.compile(r"^[ \t]{0,3}(```+|~~~+)[ \t]*([\w+#.-]*)[ \t]*$")
_SET_AS_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mbox)\s{0,3}\{([^{}]*)\}")
_WRAPPED = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"), ("**", "**"), ("*", "*"), ("`", "`"))
_LIKE_CODE = re.compile(r"[`(){}\[\]=;<>\\|\"]")
_LANGUAGES = {"py": "python", "python3": "python", "javascript": "js", "sh": "bash", "shell": "bash"}
_ENDS = ".。．"


def normalized_lines(text: str) -> tuple[str, ...]:
    r"""The lines of a text that are not empty; code in fences is not changed.

    >>> normalized_lines("*  **a**  b\n\n1) c\n") == normalized_lines("- a b\n1. c")
    True
    >>> normalized_lines("```make\nall:\n\tcc a.c\n```") == normalized_lines("```make\nall:\n    cc a.c\n```")
    False
    """
    lines: list[str] = []
    fence = ""
    for line in textwrap.dedent(text.replace("\r\n", "\n")).split("\n"):
        found = _FENCE.match(line)
        if fence:
            ends = found is not None and found[1].startswith(fence) and not found[2]
            fence = "" if ends else fence
            lines.append("```" if ends else "code " + line)
        elif found:
            fence = found[1]
            lines.append(f"```{_LANGUAGES.get(found[2].lower(), found[2].lower())}")
        elif line.strip():
            lines.append(_normal_line(line))
    return tuple(lines)


def _normal_line(line: str) -> str:
    line = _NUMBERED.sub(r"\1. ", _BULLET.sub(r"\1- ", line))
    if _LIKE_CODE.search(line):
        return line.rstrip()  # this may be code, where spaces and quotes can be part of a string
    line = _BOLD.sub(r"\1", unicodedata.normalize("NFC", line).translate(_TYPOGRAPHY).expandtabs(4))
    indented = line.lstrip()
    return " " * (len(line) - len(indented)) + " ".join(indented.split())


def without_markup(text: str) -> str:
    r"""A short answer without the markup around all of it: bold, code, dollar signs, a full stop at the end.

    >>> [without_markup(text) for text in ("**Paris**.", r"$\text{St. Louis}$", "__init__", "(1, 2)", "**a** or **b**")]
    ['Paris', 'St. Louis', '__init__', '(1, 2)', '**a** or **b**']
    """
    text = text.strip()
    if "\n" not in text:
        text = _SET_AS_TEXT.sub(r"\1", text).strip()
    # Markup can be nested; more than six levels are not formatting.
    for _ in range(6):
        before = text
        if len(text) > 1 and text[-1] in _ENDS and text[-2] not in "." + _ENDS:
            text = text[:-1].rstrip()
        for opens, closes in _WRAPPED:
            inside = text[len(opens) : -len(closes)]
            is_wrapped = text.startswith(opens) and text.endswith(closes) and len(text) > len(opens) + len(closes)
            # Spaces in code matter, "$a$ or $b$" is not one formula, and "*args*" in "**" would leave half a mark.
            if opens == "`" and inside.split() != [inside]:
                continue
            if is_wrapped and opens[0] not in (inside[0], inside[-1]) and opens not in inside and closes not in inside:
                text = inside.strip()
                break
        if text == before:
            return text
    return text
