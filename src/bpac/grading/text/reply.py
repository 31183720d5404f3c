r"""Finding the final answer in what a model said.

A verdict is ``True`` (right), ``False`` (wrong) or ``None`` (could not be graded: the model was cut off before it
answered, or the answer could not be compared). A model that finished and gave no answer is wrong; one that was cut
off is unknown, because nobody can say what it would have answered.
"""

import re
from dataclasses import dataclass

from bpac.answer import split_reasoning
from bpac.grading.text.boxes import boxes

Verdict = bool | None
# The longest answer that is graded, in characters and without its reasoning; what is longer is unknown.
LONGEST_ANSWER = 100_000
# How often an answer may be stated: a line can repeat "answer:" thousands of times, and each is read to its end.
MOST_CUES = 5

_HASHES = re.compile(r"^####[ \t]*(?P<said>.+)$", re.MULTILINE)
_CUE_WORDS = ("answer", "option", "choice")
_CUE = re.compile(
    rf"\b(?:{'|'.join(_CUE_WORDS)})\b[*_\s]{{0,4}}(?:is|are|was|would be|:|=)(?!\w)[ \t]*:?", re.IGNORECASE
)
_EMPHASIS = re.compile(r"\*\*|__|`|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)")
_SENTENCE_END = re.compile(r"[.!?](?=\s+(?:[A-Z]|$))|[.!?]$")


@dataclass(frozen=True, slots=True)
class AnswerText:
    r"""What a model said, without its reasoning.

    Parameters
    ----------
    text: what it said.
    finished: whether it came to an end by itself.

    >>> reply = AnswerText.read(r"<think>1? No, 2.</think>So $\boxed{\frac{1}{2}}$.")
    >>> reply.marked()
    ('\\frac{1}{2}',)
    >>> AnswerText.read("<think>It may be").finished
    False
    """

    text: str
    finished: bool = True

    @classmethod
    def read(cls, text: str, finished: bool = True) -> "AnswerText":
        """Strip the reasoning; a thought that never ends means that the model was cut off."""
        _, said = split_reasoning(text)
        cut_in_thought = text.lstrip().startswith("<think>") and "</think>" not in text
        return cls(said.strip(), finished and not cut_in_thought)

    def marked(self) -> tuple[str, ...]:
        r"""Every answer the model marked as one, the most binding first: boxes, ``####``, then "the answer is …".

        >>> AnswerText("The answer is 3.\nNo: the answer is **4**.").marked()
        ('4.', '3.')
        """
        # The line on which a model was cut off may hold half a number; a closed box is whole wherever it stands.
        lines = self.text if self.finished else self.text.rpartition("\n")[0]
        hashes = [found["said"] for found in _HASHES.finditer(lines)] if "####" in lines else []
        # Most texts have no such word, and are searched for it in a tenth of the time.
        folded = lines.casefold()
        cued = any(word in folded for word in _CUE_WORDS)
        cues = _after_cues(lines) if cued else []
        said = [*boxes(self.text)[::-1], *hashes[::-1], *cues[::-1]]
        return tuple(answer for answer in map(unmarked, said) if answer)

    def lines(self) -> tuple[str, ...]:
        """The lines with something on them, without markdown; none of a model that was cut off."""
        if not self.finished:
            return ()
        return tuple(line for line in map(unmarked, self.text.splitlines()) if line)

    def without_answer(self) -> Verdict:
        """The verdict when no answer was found."""
        return False if self.finished else None


def too_long(*texts: str) -> bool:
    """Whether any of the texts is longer, without its reasoning, than answers that are graded."""
    return any(len(text) > LONGEST_ANSWER and len(split_reasoning(text)[1]) > LONGEST_ANSWER for text in texts)


def _after_cues(text: str) -> list[str]:
    """What follows the last few "the answer is", each to the end of its line or, if that is empty, of the next."""
    said = []
    for cue in list(_CUE.finditer(text))[-MOST_CUES:]:
        words, _, rest = text[cue.end() :].partition("\n")
        said.append(words.strip(" *_") or rest.lstrip().partition("\n")[0])
    return said


def unmarked(said: str) -> str:
    """The words without markdown around them.

    >>> unmarked(" **(C)** ")
    '(C)'
    """
    return _EMPHASIS.sub("", said).strip(" \t\n#")


def first_sentence(said: str) -> str:
    """The words up to the end of their first sentence, without its full stop; a decimal point ends no sentence.

    >>> first_sentence("3.5 metres. This follows from above.")
    '3.5 metres'
    """
    end = _SENTENCE_END.search(said)
    return said[: end.start()] if end else said


def plain(said: str) -> str:
    r"""Words for comparison: no TeX text commands, quotes, brackets around the whole or full stop, one case.

    >>> plain(r'\text{"Yes".}')
    'yes'
    """
    said = re.sub(r"\\(?:text|textbf|mathrm|mbox|textit)\s*\{([^{}]*)\}", r"\1", said.replace("$", ""))
    said = " ".join(said.replace("\\ ", " ").split()).strip("\"'“”‘’.,;:! ")
    if len(said) > 2 and said[0] + said[-1] in ("()", "[]", "{}"):
        said = said[1:-1]
    return said.casefold()
