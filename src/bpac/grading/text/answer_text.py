r"""The text of a model's answer: strip the reasoning and find the final answer that the text marks.

A verdict is ``True`` (correct), ``False`` (wrong) or ``None`` (cannot be graded: the model was cut off before it
answered, or the answer could not be compared). A model that finished without an answer is wrong. A model that was cut
off is ungraded, because its answer is not known.
"""

import re
from dataclasses import dataclass

from bpac.answer import split_reasoning
from bpac.grading.text.boxes import boxes

Verdict = bool | None
# Answers with more characters than this, not counting the reasoning, are not graded.
LONGEST_ANSWER = 100_000
# Only the last few statements are read: a line can repeat "answer:" thousands of times, and each is read to its end.
MOST_CUES = 5

_HASHES = re.compile(r"^####[ \t]*(?P<answer>.+)$", re.MULTILINE)
_CUE_WORDS = ("answer", "option", "choice")
_CUE = re.compile(
    rf"\b(?:{'|'.join(_CUE_WORDS)})\b[*_\s]{{0,4}}(?:is|are|was|would be|:|=)(?!\w)[ \t]*:?", re.IGNORECASE
)
_EMPHASIS = re.compile(r"\*\*|__|`|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)")
_SENTENCE_END = re.compile(r"[.!?](?=\s+(?:[A-Z]|$))|[.!?]$")


@dataclass(frozen=True, slots=True)
class AnswerText:
    r"""A model's answer without its reasoning.

    Parameters
    ----------
    text: the answer.
    finished: whether the model stopped by itself; false if it was cut off.

    >>> answer = AnswerText.read(r"<think>1? No, 2.</think>So $\boxed{\frac{1}{2}}$.")
    >>> answer.marked()
    ('\\frac{1}{2}',)
    >>> AnswerText.read("<think>It may be").finished
    False
    """

    text: str
    finished: bool = True

    @classmethod
    def read(cls, text: str, finished: bool = True) -> "AnswerText":
        """Strip the reasoning; reasoning without an end means that the model was cut off."""
        _, answer = split_reasoning(text)
        cut_in_reasoning = text.lstrip().startswith("<think>") and "</think>" not in text
        return cls(answer.strip(), finished and not cut_in_reasoning)

    def marked(self) -> tuple[str, ...]:
        r"""Every marked answer, the most reliable mark first: boxes, then ``####``, then "the answer is …".

        Among marks of one kind, the last one in the text comes first.

        >>> AnswerText("The answer is 3.\nNo: the answer is **4**.").marked()
        ('4.', '3.')
        """
        # The line on which a model was cut off may contain half a number; a closed box is always complete.
        lines = self.text if self.finished else self.text.rpartition("\n")[0]
        hashes = [found["answer"] for found in _HASHES.finditer(lines)] if "####" in lines else []
        # Looking for the words first takes a tenth of the time of the pattern, and most texts have none of them.
        folded = lines.casefold()
        cued = any(word in folded for word in _CUE_WORDS)
        cues = _after_cues(lines) if cued else []
        marked = [*boxes(self.text)[::-1], *hashes[::-1], *cues[::-1]]
        return tuple(answer for answer in map(without_markdown, marked) if answer)

    def lines(self) -> tuple[str, ...]:
        """The lines that are not empty, without Markdown; no lines if the model was cut off."""
        if not self.finished:
            return ()
        return tuple(line for line in map(without_markdown, self.text.splitlines()) if line)

    def without_answer(self) -> Verdict:
        """The verdict for a text in which no answer was found."""
        return False if self.finished else None


def too_long(*texts: str) -> bool:
    """Whether any of the texts, without its reasoning, is too long to be graded."""
    return any(len(text) > LONGEST_ANSWER and len(split_reasoning(text)[1]) > LONGEST_ANSWER for text in texts)


def _after_cues(text: str) -> list[str]:
    """What follows the last few "the answer is": the rest of the line or, if that is empty, the next line."""
    answers = []
    for cue in list(_CUE.finditer(text))[-MOST_CUES:]:
        words, _, rest = text[cue.end() :].partition("\n")
        answers.append(words.strip(" *_") or rest.lstrip().partition("\n")[0])
    return answers


def without_markdown(text: str) -> str:
    """The text without Markdown emphasis and heading marks.

    >>> without_markdown(" **(C)** ")
    '(C)'
    """
    return _EMPHASIS.sub("", text).strip(" \t\n#")


def first_sentence(text: str) -> str:
    """The first sentence without its full stop; a decimal point does not end a sentence.

    >>> first_sentence("3.5 metres. This follows from above.")
    '3.5 metres'
    """
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def normalized_words(text: str) -> str:
    r"""The text for a comparison of words: lower case, without TeX text commands, quotes, outer brackets or full stop.

    >>> normalized_words(r'\text{"Yes".}')
    'yes'
    """
    text = re.sub(r"\\(?:text|textbf|mathrm|mbox|textit)\s*\{([^{}]*)\}", r"\1", text.replace("$", ""))
    text = " ".join(text.replace("\\ ", " ").split()).strip("\"'“”‘’.,;:! ")
    if len(text) > 2 and text[0] + text[-1] in ("()", "[]", "{}"):
        text = text[1:-1]
    return text.casefold()
