"""Questions about letters, brackets and truth values."""

import re
from random import Random

from bpac.local.worked_question import WorkedQuestion

_BRACKETS = ("()", "[]", "{}")
# The parts of an expression that one step evaluates: an operation on two values, or a negation.
_EVALUABLE = re.compile(r"\((?P<left>[TF])(?P<sign>[&|])(?P<right>[TF])\)|!(?P<value>[TF])")


def counting(letters: int, rng: Random) -> WorkedQuestion:
    """The number of times a letter occurs; the steps are a running count.

    >>> question = counting(4, Random(2))
    >>> question.text, question.steps, question.draft, question.answer
    ('count a in abae', 'a1b1a2e2', '1122', '2')
    """
    wanted, word = rng.choice("abcde"), _word(letters, "abcde", rng)
    counts = [str(word[: place + 1].count(wanted)) for place in range(letters)]
    steps = "".join(letter + count for letter, count in zip(word, counts, strict=True))
    return WorkedQuestion(f"count {wanted} in {word}", counts[-1], steps, "".join(counts), "counting", letters)


def reversal(letters: int, rng: Random) -> WorkedQuestion:
    """A word backwards; the steps number its letters and then list them from the highest number.

    >>> question = reversal(3, Random(1))
    >>> question.steps, question.draft
    ('0d1w2t 2t1w0d', '2t1w0d')
    """
    word = _word(letters, "abcdefghijklmnopqrstuvwxyz", rng)
    numbered = [f"{place}{letter}" for place, letter in enumerate(word)]
    draft = "".join(reversed(numbered))
    return WorkedQuestion(f"reverse {word}", word[::-1], f"{''.join(numbered)} {draft}", draft, "reversal", letters)


def sorting(letters: int, rng: Random) -> WorkedQuestion:
    """The letters of a word in alphabetical order; the steps count each letter.

    >>> question = sorting(4, Random(1))
    >>> question.text, question.steps, question.draft, question.answer
    ('sort bihc', 'a0b1c1d0e0f0g0h1i1j0', 'b1c1h1i1', 'bchi')
    """
    word = _word(letters, "abcdefghij", rng)
    counts = [f"{letter}{word.count(letter)}" for letter in "abcdefghij"]
    draft = "".join(count for count in counts if not count.endswith("0"))
    return WorkedQuestion(f"sort {word}", "".join(sorted(word)), "".join(counts), draft, "sorting", letters)


def last_letters(words: int, rng: Random) -> WorkedQuestion:
    """The last letters of several words, joined.

    >>> question = last_letters(2, Random(1))
    >>> question.text, question.steps, question.draft, question.answer
    ('last letters: ou gm', 'ou:u gm:m', 'u m', 'um')
    """
    chosen = [_word(rng.randint(2, 4), "abcdefghijklmnopqrstuvwxyz", rng) for _ in range(words)]
    steps = " ".join(f"{word}:{word[-1]}" for word in chosen)
    last = [word[-1] for word in chosen]
    return WorkedQuestion(f"last letters: {' '.join(chosen)}", "".join(last), steps, " ".join(last), "letters", words)


def depth(pairs: int, rng: Random) -> WorkedQuestion:
    """The depth of nested brackets; the steps are the depth after each bracket.

    >>> question = depth(3, Random(2))
    >>> question.text, question.steps, question.draft, question.answer
    ('depth of ([]){}', '(1[2]1)0{1}0', '121010', '2')
    """
    text, draft, opened, left = "", "", "", pairs
    while left or opened:
        if left and (not opened or rng.random() < 0.6):
            pair = rng.choice(_BRACKETS)
            text, opened, left = text + pair[0], opened + pair[1], left - 1
        else:
            text, opened = text + opened[-1], opened[:-1]
        draft += str(len(opened))
    steps = "".join(bracket + after for bracket, after in zip(text, draft, strict=True))
    return WorkedQuestion(f"depth of {text}", max(draft), steps, draft, "depth", pairs)


def truth(operations: int, rng: Random) -> WorkedQuestion:
    """The value of a logical expression; each step evaluates what can be evaluated and copies the rest.

    >>> question = truth(2, Random(4))
    >>> question.text, question.steps, question.answer
    ('value of !(F&!(F&!F))', '!(F&!(F&T))=!(F&!F)=!(F&T)=!F=T', 'T')

    The draft has only the values that each step finds:

    >>> question.draft
    'T;F;T;F;T'
    """
    text = _expression(operations, rng)
    steps, values = [text], []
    while len(steps[-1]) > 1:
        values.append("".join(map(_evaluate, _EVALUABLE.finditer(steps[-1]))))
        steps.append(_EVALUABLE.sub(_evaluate, steps[-1]))
    return WorkedQuestion(f"value of {text}", steps[-1], "=".join(steps[1:]), ";".join(values), "truth", operations)


def _word(letters: int, alphabet: str, rng: Random) -> str:
    return "".join(rng.choices(alphabet, k=letters))


def _expression(operations: int, rng: Random) -> str:
    negation = "!" if rng.random() < 0.25 else ""
    if not operations:
        return negation + rng.choice("TF")
    left = rng.randrange(operations)
    right = operations - 1 - left
    return f"{negation}({_expression(left, rng)}{rng.choice('&|')}{_expression(right, rng)})"


def _evaluate(found: re.Match[str]) -> str:
    if found["value"]:
        return "F" if found["value"] == "T" else "T"
    values = (found["left"] == "T", found["right"] == "T")
    return "T" if (all(values) if found["sign"] == "&" else any(values)) else "F"
