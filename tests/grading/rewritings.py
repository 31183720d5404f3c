"""Different ways in which models write the same correct answer."""

import re
import string
from fractions import Fraction

from bpac.grading.choices.bbh_tasks import AnswerKind
from bpac.grading.choices.options import listed_options

_INTEGER = re.compile(r"-?\d+")
_FRACTION = re.compile(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}")
_POINT = re.compile(r"\(([^()\\]*,[^()\\]*)\)")


def mathematics(answer: str) -> list[str]:
    """At least six texts that give this answer."""
    answer = " ".join(answer.split())
    return [
        f"Adding up, we find $\\boxed{{{answer}}}$.",
        f"So the answer is ${answer}$.",
        f"**Final Answer:** {answer}",
        f"That leaves one.\n#### {answer}",
        f"<think>It may be \\boxed{{0.123}}.</think>\n\\[\n\\boxed{{\\displaystyle {answer}}}\n\\]",
        f"Therefore the answer is \\({answer}\\).",
        *(f"The answer is ${other}$." for other in _notations(answer)),
        *(f"Hence \\boxed{{{other}}}" for other in _notations(answer)[:1]),
    ]


def _notations(answer: str) -> list[str]:
    replies = []
    bare = answer.strip()
    if _INTEGER.fullmatch(bare):
        replies += [f"{bare}.0", f"{bare}\\text{{ units}}", f"{int(bare):,}"]
        # Parsing an equation is slow and does not depend on the integer, so some of the integers are enough.
        if bare.startswith("-") or int(bare) % 8 == 0:
            replies.append(f"x = {bare}")
    if fraction := _FRACTION.fullmatch(bare):
        sign, above, below = fraction.groups()
        value = Fraction(int(sign + above), int(below))
        replies += [f"{sign}{above}/{below}", f"{sign}\\dfrac{{{above}}}{{{below}}}", f"{float(value):.12f}"]
    if "\\frac" in bare:
        replies += [bare.replace("\\frac", "\\dfrac"), bare.replace("\\frac", "\\tfrac")]
    flat = re.fullmatch(r"[^()\[\]{}]*", re.sub(r"\\(?:frac|sqrt)(?:\{[^{}]*\}){1,2}", "", bare))
    # 1,\!000 and 15,600 are one number each; other answers with commas are lists.
    if flat and "," in bare and not re.search(r"\\!|^\d+,\d{3}$|^\\\$", bare):
        parts = [part.strip() for part in re.split(r",(?:\s*\\ )?", bare)]
        replies += [", ".join(parts[::-1]), " \\text{ and } ".join(parts)]
    if words := re.fullmatch(r"\\(?:text|mbox)\{([^{}]*)\}", bare):
        replies += [words[1], f"\\textbf{{{words[1]}}}"]
    if _POINT.fullmatch(bare):
        replies += [f"\\left( {bare[1:-1].replace(',', ', ')} \\right)"]
    for sign in ("\\%", "\\$", "^\\circ", "^{\\circ}"):
        if sign in bare and "cos" not in bare:
            replies += [bare.replace(sign, "").strip()]
    if "pmatrix" in bare:
        replies += [bare.replace("pmatrix", "bmatrix")]
    if re.search(r"\\sqrt ?\d", bare):
        replies += [re.sub(r"\\sqrt ?(\d)", r"\\sqrt{\1}", bare)]
    return replies


def option(letter: str, text: str) -> list[str]:
    """Nine texts that choose this option, the last two by the option's text alone."""
    return [
        f"({letter})",
        f"{letter}.",
        f"Let us see.\n\nThe answer is {letter}",
        f"**{letter}**",
        f"<think>Or is the answer (A)?</think>Therefore, the answer is ({letter}) {text}.",
        f"The correct option is: {letter}. {text}",
        f"$\\boxed{{\\text{{{letter}}}}}$",
        text,
        f"The answer is {text}.",
    ]


def bbh(kind: AnswerKind, target: str, prompt: str) -> list[str]:
    """At least seven texts that give this answer, for every kind of answer."""
    replies = [
        f"The answer is {target}.",
        f"**{target}**",
        f"I think.\n\nFinal Answer: {target}",
        f"Answer:\n{target}",
        target,
    ]
    replies += [f"<think>Hm.</think>So the answer is: **{target}**", f"\\boxed{{{target}}}"]
    if kind is AnswerKind.OPTION and re.fullmatch(r"\([A-Z]\)", target):
        letter = target[1]
        replies += option(letter, listed_options(prompt)[string.ascii_uppercase.index(letter)])
    if kind in (AnswerKind.YES_NO, AnswerKind.PLAUSIBLE, AnswerKind.TRUE_FALSE, AnswerKind.VALID):
        replies += [target.upper(), f"{target.capitalize()}, for that follows.", f"Thus it is {target.lower()}."]
    if kind is AnswerKind.WORDS:
        words = target.split()
        numbered = "\n".join(f"{number}. {word}" for number, word in enumerate(words, start=1))
        replies += [", ".join(words), f"The sorted words are:\n{numbered}", "\n".join(f"- {word}" for word in words)]
    if kind is AnswerKind.NUMBER:
        replies += [f"The answer is ${target}$.", f"= {target}", f"There are {target} of them."]
    if kind is AnswerKind.BRACKETS:
        replies += [target.replace(" ", ""), f"`{target}`", f"{prompt.rpartition(':')[2]} {target}"]
    return replies
