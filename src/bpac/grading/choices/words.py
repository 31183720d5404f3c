"""Answers that are one of a few words, a list of words or a sequence of brackets."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from bpac.grading.text.answer_text import AnswerText, Verdict, normalized_words, too_long, without_markdown
from bpac.grading.text.boxes import boxes

YES_NO: Mapping[str, str] = {"yes": "yes", "no": "no"}
PLAUSIBLE: Mapping[str, str] = {**YES_NO, "plausible": "yes", "implausible": "no"}
TRUE_FALSE: Mapping[str, str] = {"true": "true", "false": "false"}
VALID: Mapping[str, str] = {"valid": "valid", "invalid": "invalid"}

_NEGATION = re.compile(r"\b(?:not|n't|never)\b[\w\s]{0,20}$")
# How many characters before a word are searched for a negation.
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
    reference: the correct word.
    text: the model's answer, with or without its reasoning.
    words: every word that can be an answer, and its meaning; words with the same meaning are the same answer.
    finished: whether the model stopped by itself; false if it was cut off.

    >>> grade_word("No", "**No**, because they differ.", YES_NO)
    True
    >>> grade_word("invalid", "The argument is not valid.", VALID)
    True
    """
    if too_long(text):
        return None
    answer = AnswerText.read(text, finished)
    lines = answer.lines()
    for candidate in (*answer.marked(), *lines[-1:], *lines[:1]):
        if meaning := _meaning(normalized_words(candidate), words):
            return meaning == words[reference.casefold()]
    return answer.without_answer()


def _meaning(answer: str, words: Mapping[str, str]) -> str | None:
    """The meaning of the word that an answer begins with, or of its words if all mean the same."""
    found = list(re.finditer(rf"\b(?:{'|'.join(words)})\b", answer))
    if not found:
        return None
    meanings = {_with_negation(answer, word, words) for word in found}
    leads = found[0].start() == 0
    return _with_negation(answer, found[0], words) if leads or len(meanings) == 1 else None


def _with_negation(answer: str, word: re.Match[str], words: Mapping[str, str]) -> str:
    meaning = words[word[0]]
    if not _NEGATION.search(answer[max(0, word.start() - _BEFORE) : word.start()]):
        return meaning
    return next(other for other in words.values() if other != meaning)


def grade_word_list(reference: str, text: str, finished: bool = True) -> Verdict:
    r"""Grade a list of words in order, in any format: on one line, with commas, numbered or one per line.

    Parameters
    ----------
    reference: the correct words, separated by spaces.
    text: the model's answer, with or without its reasoning.
    finished: whether the model stopped by itself; false if it was cut off.

    >>> grade_word_list("ant bee cow", "The sorted list is:\n1. ant\n2. bee\n3. cow")
    True
    """
    if too_long(text):
        return None
    answer = AnswerText.read(text, finished)
    correct = _listed(reference)
    # Lazily: the first block nearly always contains the list.
    for block in chain(boxes(answer.text)[::-1], _blocks(answer.text) if answer.finished else ()):
        if given := _listed(block):
            return given == correct
    return answer.without_answer()


def _blocks(text: str) -> Iterator[str]:
    """The parts that may be the list: after each announcement up to an empty line, last one first; then the end."""
    for start in _announced(text)[::-1]:
        rest = text[start:].lstrip()
        yield rest[: end.start()] if (end := _EMPTY_LINE.search(rest)) else rest
    yield _EMPTY_LINE.split(text)[-1]


def _announced(text: str) -> list[int]:
    """Where each "the sorted list is:" ends: at the first colon after it on its line, or else at the last verb."""
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
            # Markup may follow the colon.
            found.append(marks.end() if (marks := _MARKS.match(text, at)) else at)
    return found


def _listed(block: str) -> list[str]:
    block = _NUMBERING.sub(" ", block)
    block = re.sub(r"\\(?:text|mathrm|textbf)\s*\{|\\[,; ]|[{}$\"“”\[\]]", " ", without_markdown(block))
    return [word.strip(".'") for word in re.split(r"[\s,;|→]+", block.casefold()) if word.strip(".'")]


def grade_brackets(reference: str, text: str, prompt: str = "", finished: bool = True) -> Verdict:
    r"""Grade closing brackets, alone or together with the sequence that they complete.

    Parameters
    ----------
    reference: the correct brackets, separated by spaces.
    text: the model's answer, with or without its reasoning.
    prompt: the question, which ends with the sequence to complete.
    finished: whether the model stopped by itself; false if it was cut off.

    >>> grade_brackets("} ]", "So the answer is: } ]"), grade_brackets("} ]", "[ { } ]", "Input: [ {")
    (True, True)
    """
    if too_long(text):
        return None
    answer = AnswerText.read(text, finished)
    correct, given_start = _brackets(reference), _brackets(prompt.rpartition(":")[2])
    # The contents of the box are braces too, so the box ends at the last brace of its line.
    in_boxes = [
        line[start + len("\\boxed{") : line.rindex("}")]
        for line in answer.text.splitlines()
        if 0 <= (start := line.find("\\boxed{")) < line.rfind("}")
    ]
    lines = answer.lines()
    for candidate in (*in_boxes[::-1], *answer.marked(), *lines[-1:], *lines[:1]):
        # Prose may contain brackets too; the answer contains nothing else.
        if not re.search(r"[A-Za-z]{2}", re.sub(r"\\[a-z]+", "", candidate)) and (given := _brackets(candidate)):
            return given in (correct, given_start + correct)
    return answer.without_answer()


def _brackets(text: str) -> str:
    if (opens := _TEXT_OPENS.search(text)) and (closes := text.rfind("}")) >= opens.end():
        text = text[: opens.start()] + text[opens.end() : closes] + text[closes + 1 :]
    text = text.replace(r"\langle", "<").replace(r"\rangle", ">").replace(r"\lt", "<").replace(r"\gt", ">")
    return "".join(_BRACKETS.findall(text))
