"""Questions with known answers, of eleven kinds and many sizes; a tenth of them all is never trained on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from random import Random

from bpac.errors import InputError
from bpac.local import arithmetic, symbols
from bpac.local.worked_question import WorkedQuestion


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question and the sizes it comes in.

    Parameters
    ----------
    ask: makes a question of some size.
    easiest, hardest: the smallest and the largest size.
    """

    ask: Callable[[int, Random], WorkedQuestion]
    easiest: int
    hardest: int

    @property
    def sizes(self) -> range:
        """Every size."""
        return range(self.easiest, self.hardest + 1)


KINDS: Mapping[str, QuestionKind] = {
    "addition": QuestionKind(arithmetic.addition, 2, 5),
    "subtraction": QuestionKind(arithmetic.subtraction, 2, 5),
    "multiple": QuestionKind(arithmetic.multiple, 2, 5),
    "remainder": QuestionKind(arithmetic.remainder, 2, 5),
    "chain": QuestionKind(arithmetic.chain, 2, 6),
    "counting": QuestionKind(symbols.counting, 3, 10),
    "reversal": QuestionKind(symbols.reversal, 3, 8),
    "sorting": QuestionKind(symbols.sorting, 3, 8),
    "letters": QuestionKind(symbols.last_letters, 2, 5),
    "depth": QuestionKind(symbols.depth, 3, 7),
    "truth": QuestionKind(symbols.truth, 2, 4),
}


# So many draws in a row without a new question, and there are no more.
MOST_KNOWN = 1_000


def is_held_out(text: str) -> bool:
    """Whether a question is one of the fixed tenth that no model here is ever trained on.

    >>> is_held_out("82 + 74"), is_held_out("82 + 75")
    (True, False)
    """
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % 10 == 0


def training_questions(seed: int) -> Iterator[WorkedQuestion]:
    """Questions to learn from, without end: any kind, small sizes more often than large ones; never a held-out one.

    >>> next(training_questions(seed=1)).text
    '25 * 9'
    """
    return _drawn(seed, held_out=False)


def held_out_questions(count: int, seed: int, kind: str | None = None) -> list[WorkedQuestion]:
    """Different questions that were never trained on.

    Parameters
    ----------
    count: how many.
    seed: the same seed gives the same questions.
    kind: only this kind; any if not given.

    >>> [question.text for question in held_out_questions(2, seed=1, kind="addition")]
    ['72 + 70', '3791 + 74']
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"there is no kind of question called {kind!r}; there are {', '.join(KINDS)}")
    found: dict[str, WorkedQuestion] = {}
    draws = _drawn(seed, held_out=True, kind=kind)
    known = 0
    while len(found) < count:
        question = next(draws)
        known = known + 1 if question.text in found else 0
        if known > MOST_KNOWN:
            raise InputError(f"there are not {count} held-out questions of kind {kind}, only about {len(found)}")
        found.setdefault(question.text, question)
    return list(found.values())


def _drawn(seed: int, held_out: bool, kind: str | None = None) -> Iterator[WorkedQuestion]:
    rng = Random(seed)
    names = [kind] if kind else list(KINDS)
    while True:
        # Kind and size are kept until a question fits: another draw of both would favour kinds with many questions.
        chosen = KINDS[rng.choice(names)]
        # The smaller of two draws: a small model learns easy questions only if it meets them often.
        size = min(rng.choice(chosen.sizes), rng.choice(chosen.sizes))
        question = chosen.ask(size, rng)
        while is_held_out(question.text) is not held_out:
            question = chosen.ask(size, rng)
        yield question
