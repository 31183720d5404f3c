r"""Finding the final answer in what a model said.

A verdict is ``True`` (right), ``False`` (wrong) or ``None`` (could not be graded: the model was cut off before it
answered, or the answer could not be compared). A model that finished and gave no answer is wrong; one that was cut
off is unknown, because nobody can say what it would have answered.
"""

import re
from dataclasses import dataclass

from bpac.answer import split_reasoning

Verdict = bool | None

_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?P<open>\{)?")
# Two boxes with only this between them are one answer: "\boxed{2} or \boxed{3}".
_JOINT = re.compile(r"[\s$.,;]*(?:\\text\{)?\s*(?:and|or)?\s*\}?[\s$,;]*")
_HASHES = re.compile(r"^####[ \t]*(?P<said>.+)$", re.MULTILINE)
_CUE_WORDS = ("answer", "option", "choice")
_CUE = re.compile(
    rf"\b(?:{'|'.join(_CUE_WORDS)})\b[*_\s]{{0,4}}(?:is|are|was|would be|:|=)(?!\w)[ \t]*:?"
    r"(?=(?P<said>[^\n]*)(?P<next>\s*[^\n]*))",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"\*\*|__|`|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)")
_SENTENCE_END = re.compile(r"[.!?](?=\s+(?:[A-Z]|$))|[.!?]$")


@dataclass(frozen=True, slots=True)
class Reply:
    r"""What a model said, without its reasoning.

    Parameters
    ----------
    text: what it said.
    finished: whether it came to an end by itself.

    >>> reply = Reply.read(r"<think>1? No, 2.</think>So $\boxed{\frac{1}{2}}$.")
    >>> reply.marked()
    ('\\frac{1}{2}',)
    >>> Reply.read("<think>It may be").finished
    False
    """

    text: str
    finished: bool = True

    @classmethod
    def read(cls, text: str, finished: bool = True) -> "Reply":
        """Strip the reasoning; a thought that never ends means that the model was cut off."""
        thought, said = split_reasoning(text)
        cut_in_thought = bool(thought) and "</think>" not in text
        return cls(said.strip(), finished and not cut_in_thought)

    def marked(self) -> tuple[str, ...]:
        r"""Every answer the model marked as one, the most binding first: boxes, ``####``, then "the answer is …".

        >>> Reply("The answer is 3.\nNo: the answer is **4**.").marked()
        ('4.', '3.')
        """
        # The line on which a model was cut off may hold half a number; a closed box is whole wherever it stands.
        lines = self.text if self.finished else self.text.rpartition("\n")[0]
        hashes = [found["said"] for found in _HASHES.finditer(lines)] if "####" in lines else []
        # Most texts have no such word, and are searched for it in a tenth of the time.
        folded = lines.casefold()
        cued = any(word in folded for word in _CUE_WORDS)
        cues = [found["said"].strip(" *_") or found["next"] for found in _CUE.finditer(lines)] if cued else []
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


def boxes(text: str) -> list[str]:
    r"""What stands in boxes, in order; neighbours joined by nothing but "and", "or" or a comma are one answer.

    >>> boxes(r"\boxed{\frac{1}{2}} … $\boxed{2}$ or $\boxed{3}$")
    ['\\frac{1}{2}', '2, 3']
    """
    found: list[str] = []
    end = None
    for box in _BOX.finditer(text):
        inside, stop = _inside(text, box)
        if inside is None:
            continue
        if end is not None and _JOINT.fullmatch(text, end, box.start()):
            found[-1] += f", {inside}"
        else:
            found.append(inside)
        end = stop
    return found


def _inside(text: str, box: re.Match[str]) -> tuple[str | None, int]:
    if not box["open"]:
        token = re.compile(r"[^\s${}]+").match(text, box.end())
        return (token[0].rstrip("."), token.end()) if token else (None, box.end())
    depth = 1
    for at in range(box.end(), len(text)):
        if text[at - 1] == "\\" and text[at - 2 : at] != "\\\\":
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[box.end() : at].strip(), at + 1
    return None, box.end()


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
