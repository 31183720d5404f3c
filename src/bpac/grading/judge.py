"""A judge's marks for open questions: the prompt that asks for one and what its reply means. Nothing is sent.

The rubric is the paper's: marks from 1 to 10, and a number is all that is wanted. The words are ours.
"""

import re

from bpac.errors import NoVerdict

LOWEST, HIGHEST = 1.0, 10.0

_RUBRIC = """\
You grade an assistant's answer to a user's request. Weigh whether it is correct, whether it answers all that was \
asked, whether it helps, and whether it is clear. Length earns nothing.

Marks run from 1 to 10: 1 is useless or wrong, 3 has grave faults, 5 is half right, 7 is good with small faults, \
9 is very good, 10 could not be better.

Reply with the mark only: one number from 1 to 10, no words."""

_NUMBER = r"(?<![\w.,/-])(\d+(?:\.\d+)?)"
_OUT_OF_TEN = re.compile(rf"{_NUMBER}\s*(?:/|out of|of)\s*10(?:\.0+)?(?![\d./])", re.IGNORECASE)
_NAMED = re.compile(
    rf"\b(?:score|mark|rating|grade|verdict)s?\b\s*(?:is|of|would be|:|=)?\s*:?\s*{_NUMBER}(?![\w/%])", re.IGNORECASE
)
_BARE = re.compile(r"[\[({<\"']*(\d+(?:\.\d+)?)[\])}>\"']*\.?")


def judge_messages(question: str, answer: str) -> list[dict[str, str]]:
    """The messages that ask a judge for the mark of an answer.

    Parameters
    ----------
    question: what the user asked.
    answer: what the assistant answered, without its reasoning.

    >>> [message["role"] for message in judge_messages("Why?", "Because.")]
    ['system', 'user']
    """
    # The tags keep an answer that gives orders from being read as the judge's own.
    case = f"<request>\n{question}\n</request>\n\n<answer>\n{answer}\n</answer>\n\nThe mark, from 1 to 10:"
    return [{"role": "system", "content": _RUBRIC}, {"role": "user", "content": case}]


def parse_mark(reply: str) -> float:
    """The mark in a judge's reply, which has its reasoning stripped already.

    >>> parse_mark(" 7 "), parse_mark("8/10"), parse_mark("**Score: 7.5**")
    (7.0, 8.0, 7.5)
    """
    words = re.sub(r"[*_`]", "", reply).strip()
    bare = _BARE.fullmatch(words)
    found = [bare[1]] if bare else _OUT_OF_TEN.findall(words) + _NAMED.findall(_OUT_OF_TEN.sub(" ", words))
    marks = {float(mark) for mark in found}
    if len(marks) != 1:
        problem = "several different marks" if marks else "no clear mark"
        raise NoVerdict(f"a judge must reply with one mark from 1 to 10, got {problem}: {_shown(reply)}")
    (mark,) = marks
    if not LOWEST <= mark <= HIGHEST:
        raise NoVerdict(f"a judge's mark must be from 1 to 10, got {mark:g}: {_shown(reply)}")
    return mark


def _shown(reply: str) -> str:
    return repr(reply if len(reply) <= 200 else reply[:200] + "…")
