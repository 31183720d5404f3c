"""Labelled pairs of answers, generated from a random seed."""

import random
from collections.abc import Iterator, Mapping

from bpac.grader_accuracy.labelled_pair import AnswerVariants, LabelledPair, VariantsGenerator
from bpac.grader_accuracy.phrasing import phrase_answer
from bpac.grader_accuracy.sentences import sentence, shared
from bpac.grader_accuracy.structures import call_arguments, code, json_text, listing
from bpac.grader_accuracy.words_and_numbers import formula, name, near_miss, number, option

TEXTS: Mapping[str, VariantsGenerator] = {
    "numbers": number,
    "formulas": formula,
    "names": name,
    "near misses": near_miss,
    "options": option,
    "lists": listing,
    "code": code,
    "JSON": json_text,
    "sentences": sentence,
    "shared parts": shared,
}
CALLS: Mapping[str, VariantsGenerator] = {"tool calls": call_arguments}


def generated_pairs(
    kinds: Mapping[str, VariantsGenerator], count: int, same: bool, seed: int = 0
) -> Iterator[LabelledPair]:
    """Pairs of answers, of each kind in turn.

    Parameters
    ----------
    kinds: the kinds of answers and their generators.
    count: number of pairs.
    same: whether the two answers of every pair are the same.
    seed: random seed (default: 0).

    >>> pair = next(generated_pairs({"options": option}, 1, same=False))
    >>> pair.same, pair.draft != pair.expert
    (False, True)
    """
    rng = random.Random(f"{seed} {same}")
    names = tuple(kinds)
    for number_ in range(count):
        kind = names[number_ % len(names)]
        variants = kinds[kind](rng)
        draft, expert = _sides(variants, same, rng)
        yield LabelledPair(kind, phrase_answer(variants, draft, rng), phrase_answer(variants, expert, rng), same)


def _sides(variants: AnswerVariants, same: bool, rng: random.Random) -> tuple[str, str]:
    one = rng.choice(variants.same)
    other = rng.choice(variants.same if same else variants.different)
    return (one, other) if rng.random() < 0.5 else (other, one)
