"""Answers that are one of a few words, a list of words or a run of brackets."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from bpac.grading.text.boxes import boxes
from bpac.grading.text.reply import AnswerText, Verdict, plain, too_long, unmarked

YES_NO: Mapping[str, str] = {"yes": "yes", "no": "no"}
PLAUSIBLE: Mapping[str, str] = {**YES_NO, "plausible": "yes", "implausible": "no"}
TRUE_FALSE: Mapping[str, str] = {"true": "true", "false": "false"}
VALID: Mapping[str, str] = {"valid": "valid", "invalid": "invalid"}

_NEGATION = re.compile(r"\b(?:not|n't|never)\b[\w\s]{0,20}$")
# The longest negation and the words after it.
_BEFORE = 30
_NUMBERING = re.compile(r"(?m)^[ \t]*(?:\d+[.)]|[-*•])\s+")
_LIST_WORD = re.compile(r"\b(?:answer|result|list|order|words)\b", re.IGNORECASE)
_LIST_STARTS = re.compile(r"(?:\bis\b|\bare\b|:)[*_ \t]*:?", re.IGNORECASE)
_MARKS = re.compile(r"[*_ \t]*:?")
_EMPTY_LINE = re.compile(r"\n\s*\n")
_TEXT_OPENS = re.compile(r"\\(?:text|texttt|mathrm)\s{0,3}\{")
_BRACKETS = re.compile(r"[()\[\]{}<>]+")


def grade_word(reference: str, text: str, words: Mapping[str, str], finished: bool = True) -> Verdict:
    """Grade an answer that is one of a few words.

    Parameters
    ----------
    reference: the right word.
    text: what the model said, with or without its reasoning.
    words: every word that can be said, and what it means.
    finished: whether it came to an end by itself.

    >>> grade_word("No", "**No**, because they differ.", YES_NO)
    True
    >>> grade_word("invalid", "The argument is not valid.", VALID)
    True
    """
    if too_long(text):
        return None
    reply = AnswerText.read(text, finished)
    lines = reply.lines()
    for said in (*reply.marked(), *lines[-1:], *lines[:1]):
        if meant := _meant(plain(said), words):
            return meant == words[reference.casefold()]
    return reply.without_answer()


def _meant(said: str, words: Mapping[str, str]) -> str | None:
    """The word an answer begins with, or the only one it holds."""
    found = list(re.finditer(rf"\b(?:{'|'.join(words)})\b", said))
    if not found:
        return None
    meanings = {_with_negation(said, word, words) for word in found}
    leads = found[0].start() == 0
    return _with_negation(said, found[0], words) if leads or len(meanings) == 1 else None


def _with_negation(said: str, word: re.Match[str], words: Mapping[str, str]) -> str:
    meaning = words[word[0]]
    if not _NEGATION.search(said[max(0, word.start() - _BEFORE) : word.start()]):
        return meaning
    return next(other for other in words.values() if other != meaning)


def grade_word_list(reference: str, text: str, finished: bool = True) -> Verdict:
    r"""Grade words in order, however they are set: in a line, with commas, numbered, one a line.

    Parameters
    ----------
    reference: the right words, with spaces between them.
    text: what the model said, with or without its reasoning.
    finished: whether it came to an end by itself.

    >>> grade_word_list("ant bee cow", "The sorted list is:\n1. ant\n2. bee\n3. cow")
    True
    """
    if too_long(text):
        return None
    reply = AnswerText.read(text, finished)
    right = _listed(reference)
    # One after the other: most texts have their list in the first of them.
    for block in chain(boxes(reply.text)[::-1], _blocks(reply.text) if reply.finished else ()):
        if given := _listed(block):
            return given == right
    return reply.without_answer()


def _blocks(text: str) -> Iterator[str]:
    """What may be a list: up to the next empty line after every announcement, the last one first, then the end."""
    for start in _announced(text)[::-1]:
        rest = text[start:].lstrip()
        yield rest[: end.start()] if (end := _EMPTY_LINE.search(rest)) else rest
    yield _EMPTY_LINE.split(text)[-1]


def _announced(text: str) -> list[int]:
    """Where every "the sorted list is:" ends: at the first colon after it on its line, or else at the last verb."""
    found: list[int] = []
    at = stop = 0
    while word := _LIST_WORD.search(text, at):
        if word.end() > stop:
            stop = text.find("\n", word.end())
            stop = len(text) if stop < 0 else stop
        colon = text.find(":", word.end(), stop)
        ends = list(_LIST_STARTS.finditer(text, word.end(), stop if colon < 0 else colon + 1))
        starts = ends[-1] if ends else None
        at = starts.end() if starts else stop
        if starts:
            # A colon may be followed by marks of its own.
            found.append(marks.end() if (marks := _MARKS.match(text, at)) else at)
    return found


def _listed(block: str) -> list[str]:
    block = _NUMBERING.sub(" ", block)
    block = re.sub(r"\\(?:text|mathrm|textbf)\s*\{|\\[,; ]|[{}$\"“”\[\]]", " ", unmarked(block))
    return [word.strip(".'") for word in re.split(r"[\s,;|→]+", block.casefold()) if word.strip(".'")]


def grade_brackets(reference: str, text: str, prompt: str = "", finished: bool = True) -> Verdict:
    r"""Grade closing brackets, alone or with the sequence they complete.

    Parameters
    ----------
    reference: the right brackets, with spaces between them.
    text: what the model said, with or without its reasoning.
    prompt: the question, which ends with the sequence to complete.
    finished: whether it came to an end by itself.

    >>> grade_brackets("} ]", "So the answer is: } ]"), grade_brackets("} ]", "[ { } ]", "Input: [ {")
    (True, True)
    """
    if too_long(text):
        return None
    reply = AnswerText.read(text, finished)
    right, begun = _run(reference), _run(prompt.rpartition(":")[2])
    # In a box full of braces only the line's last brace can be the box's own.
    in_boxes = [
        line[start + len("\\boxed{") : line.rindex("}")]
        for line in reply.text.splitlines()
        if 0 <= (start := line.find("\\boxed{")) < line.rfind("}")
    ]
    lines = reply.lines()
    for said in (*in_boxes[::-1], *reply.marked(), *lines[-1:], *lines[:1]):
        # A line of prose may hold brackets too; the answer holds nothing else.
        if not re.search(r"[A-Za-z]{2}", re.sub(r"\\[a-z]+", "", said)) and (given := _run(said)):
            return given in (right, begun + right)
    return reply.without_answer()


def _run(said: str) -> str:
    if (opens := _TEXT_OPENS.search(said)) and (closes := said.rfind("}")) >= opens.end():
        said = said[: opens.start()] + said[opens.end() : closes] + said[closes + 1 :]
    said = said.replace(r"\langle", "<").replace(r"\rangle", ">").replace(r"\lt", "<").replace(r"\gt", ">")
    return "".join(_BRACKETS.findall(said))
