"""Generated questions of eleven kinds and several sizes; a fixed tenth is held out and never used in training."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from random import Random

from bpac.errors import InputError
from bpac.local import arithmetic, symbols
from bpac.local.worked_question import WorkedQuestion


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question and its sizes.

    Parameters
    ----------
    ask: generates a question of a given size.
    easiest, hardest: the smallest and the largest size.
    """

    ask: Callable[[int, Random], WorkedQuestion]
    easiest: int
    hardest: int

    @property
    def sizes(self) -> range:
        """All sizes."""
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


# After this many draws in a row without a new question, there are no more questions.
MOST_REPEATS = 1_000


def is_held_out(text: str) -> bool:
    """Whether a question belongs to the fixed tenth that is never used in training.

    >>> is_held_out("82 + 74"), is_held_out("82 + 75")
    (True, False)
    """
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % 10 == 0


def training_questions(seed: int) -> Iterator[WorkedQuestion]:
    """An endless stream of training questions, small sizes more often than large ones, without held-out questions.

    >>> next(training_questions(seed=1)).text
    '25 * 9'
    """
    return _drawn(seed, held_out=False)


def held_out_questions(count: int, seed: int, kind: str | None = None) -> list[WorkedQuestion]:
    """Distinct questions that are never used in training.

    Parameters
    ----------
    count: number of questions.
    seed: random seed.
    kind: only questions of this kind (default: all kinds).

    >>> [question.text for question in held_out_questions(2, seed=1, kind="addition")]
    ['72 + 70', '3791 + 74']
    """
    if kind is not None and kind not in KINDS:
        raise InputError(f"{kind!r} is not a kind of question; use one of {', '.join(KINDS)}")
    found: dict[str, WorkedQuestion] = {}
    draws = _drawn(seed, held_out=True, kind=kind)
    repeats = 0
    while len(found) < count:
        question = next(draws)
        repeats = repeats + 1 if question.text in found else 0
        if repeats > MOST_REPEATS:
            raise InputError(f"there are only about {len(found)} held-out questions of kind {kind}, not {count}")
        found.setdefault(question.text, question)
    return list(found.values())


def _drawn(seed: int, held_out: bool, kind: str | None = None) -> Iterator[WorkedQuestion]:
    rng = Random(seed)
    names = [kind] if kind else list(KINDS)
    while True:
        # Kind and size stay until a question fits: drawing them again would favour kinds with many questions.
        chosen = KINDS[rng.choice(names)]
        # The smaller of two draws, because a small model learns easy questions only if it sees them often.
        size = min(rng.choice(chosen.sizes), rng.choice(chosen.sizes))
        question = chosen.ask(size, rng)
        while is_held_out(question.text) is not held_out:
            question = chosen.ask(size, rng)
        yield question
