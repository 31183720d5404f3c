"""Answers that are one of a few words, a list of words or a run of brackets."""

import re
from collections.abc import Mapping

from bpac.grading.answers import Reply, Verdict, boxes, plain, unmarked

YES_NO: Mapping[str, str] = {"yes": "yes", "no": "no"}
PLAUSIBLE: Mapping[str, str] = {**YES_NO, "plausible": "yes", "implausible": "no"}
TRUE_FALSE: Mapping[str, str] = {"true": "true", "false": "false"}
VALID: Mapping[str, str] = {"valid": "valid", "invalid": "invalid"}

_NEGATION = re.compile(r"\b(?:not|n't|never)\b[\w\s]{0,20}$")
_NUMBERING = re.compile(r"(?m)^\s*(?:\d+[.)]|[-*•])\s+")
_LISTS = re.compile(r"\b(?:answer|result|list|order|words)\b[^\n:]*(?:\bis\b|\bare\b|:)[*_ \t]*:?", re.IGNORECASE)
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
    reply = Reply.read(text, finished)
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
    if not _NEGATION.search(said[: word.start()]):
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
    reply = Reply.read(text, finished)
    right = _listed(reference)
    blocks = [*boxes(reply.text)[::-1]]
    if reply.finished:
        # A list may run over many lines, so it is read up to the next empty one.
        cues = [found.end() for found in _LISTS.finditer(reply.text)]
        blocks += [re.split(r"\n\s*\n", reply.text[end:].strip())[0] for end in cues[::-1]]
        blocks += re.split(r"\n\s*\n", reply.text)[::-1][:1]
    for block in blocks:
        if given := _listed(block):
            return given == right
    return reply.without_answer()


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
    reply = Reply.read(text, finished)
    right, begun = _run(reference), _run(prompt.rpartition(":")[2])
    # In a box full of braces only the line's last brace can be the box's own.
    in_boxes = re.findall(r"\\boxed\{(.*)\}", reply.text)
    lines = reply.lines()
    for said in (*in_boxes[::-1], *reply.marked(), *lines[-1:], *lines[:1]):
        # A line of prose may hold brackets too; the answer holds nothing else.
        if not re.search(r"[A-Za-z]{2}", re.sub(r"\\[a-z]+", "", said)) and (given := _run(said)):
            return given in (right, begun + right)
    return reply.without_answer()


def _run(said: str) -> str:
    said = re.sub(r"\\(?:text|texttt|mathrm)\s*\{(.*)\}", r"\1", said)
    said = said.replace(r"\langle", "<").replace(r"\rangle", ">").replace(r"\lt", "<").replace(r"\gt", ">")
    return "".join(_BRACKETS.findall(said))
