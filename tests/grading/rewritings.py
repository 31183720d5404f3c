"""Honest ways of saying one right answer, as models do."""

import re
import string
from fractions import Fraction

from bpac.grading.choices.bbh import AnswerKind
from bpac.grading.choices.options import listed_options

_INTEGER = re.compile(r"-?\d+")
_FRACTION = re.compile(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}")
_POINT = re.compile(r"\(([^()\\]*,[^()\\]*)\)")


def mathematics(answer: str) -> list[str]:
    """At least six replies that give this answer."""
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
    said = []
    bare = answer.strip()
    if _INTEGER.fullmatch(bare):
        said += [f"{bare}.0", f"{bare}\\text{{ units}}", f"x = {bare}", f"{int(bare):,}"]
    if fraction := _FRACTION.fullmatch(bare):
        sign, above, below = fraction.groups()
        value = Fraction(int(sign + above), int(below))
        said += [f"{sign}{above}/{below}", f"{sign}\\dfrac{{{above}}}{{{below}}}", f"{float(value):.12f}"]
    if "\\frac" in bare:
        said += [bare.replace("\\frac", "\\dfrac"), bare.replace("\\frac", "\\tfrac")]
    flat = re.fullmatch(r"[^()\[\]{}]*", re.sub(r"\\(?:frac|sqrt)(?:\{[^{}]*\}){1,2}", "", bare))
    # 1,\!000 is one number, and so is 15,600; everything else with commas is a list.
    if flat and "," in bare and not re.search(r"\\!|^\d+,\d{3}$|^\\\$", bare):
        parts = [part.strip() for part in re.split(r",(?:\s*\\ )?", bare)]
        said += [", ".join(parts[::-1]), " \\text{ and } ".join(parts)]
    if words := re.fullmatch(r"\\(?:text|mbox)\{([^{}]*)\}", bare):
        said += [words[1], f"\\textbf{{{words[1]}}}"]
    if _POINT.fullmatch(bare):
        said += [f"\\left( {bare[1:-1].replace(',', ', ')} \\right)"]
    for sign in ("\\%", "\\$", "^\\circ", "^{\\circ}"):
        if sign in bare and "cos" not in bare:
            said += [bare.replace(sign, "").strip()]
    if "pmatrix" in bare:
        said += [bare.replace("pmatrix", "bmatrix")]
    if re.search(r"\\sqrt ?\d", bare):
        said += [re.sub(r"\\sqrt ?(\d)", r"\\sqrt{\1}", bare)]
    return said


def option(letter: str, text: str) -> list[str]:
    """Nine replies that choose this option, the last two by its text alone."""
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
    """At least five replies that give this answer, whatever its kind."""
    said = [
        f"The answer is {target}.",
        f"**{target}**",
        f"I think.\n\nFinal Answer: {target}",
        f"Answer:\n{target}",
        target,
    ]
    said += [f"<think>Hm.</think>So the answer is: **{target}**", f"\\boxed{{{target}}}"]
    if kind is AnswerKind.OPTION and re.fullmatch(r"\([A-Z]\)", target):
        letter = target[1]
        said += option(letter, listed_options(prompt)[string.ascii_uppercase.index(letter)])
    if kind in (AnswerKind.YES_NO, AnswerKind.PLAUSIBLE, AnswerKind.TRUE_FALSE, AnswerKind.VALID):
        said += [target.upper(), f"{target.capitalize()}, for that follows.", f"Thus it is {target.lower()}."]
    if kind is AnswerKind.WORDS:
        words = target.split()
        numbered = "\n".join(f"{number}. {word}" for number, word in enumerate(words, start=1))
        said += [", ".join(words), f"The sorted words are:\n{numbered}", "\n".join(f"- {word}" for word in words)]
    if kind is AnswerKind.NUMBER:
        said += [f"The answer is ${target}$.", f"= {target}", f"There are {target} of them."]
    if kind is AnswerKind.BRACKETS:
        said += [target.replace(" ", ""), f"`{target}`", f"{prompt.rpartition(':')[2]} {target}"]
    return said
