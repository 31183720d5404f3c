"""Labelled pairs of answers, made up from a seed."""

import random
from collections.abc import Iterator, Mapping

from bpac.grader_accuracy.pair import Draw, LabelledPair, Meant
from bpac.grader_accuracy.saying import said
from bpac.grader_accuracy.sentences import sentence, shared
from bpac.grader_accuracy.structures import call_arguments, code, json_text, listing
from bpac.grader_accuracy.words_and_numbers import formula, name, near_miss, number, option

TEXTS: Mapping[str, Draw] = {
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
CALLS: Mapping[str, Draw] = {"tool calls": call_arguments}


def made_up(kinds: Mapping[str, Draw], count: int, same: bool, seed: int = 0) -> Iterator[LabelledPair]:
    """Pairs of answers of every kind in turn.

    Parameters
    ----------
    kinds: what the answers may be.
    count: how many pairs.
    same: whether the answers of each are the same.
    seed: of all that is drawn.

    >>> pair = next(made_up({"options": option}, 1, same=False))
    >>> pair.same, pair.draft != pair.expert
    (False, True)
    """
    draw = random.Random(f"{seed} {same}")
    names = tuple(kinds)
    for number_ in range(count):
        kind = names[number_ % len(names)]
        meant = kinds[kind](draw)
        draft, expert = _sides(meant, same, draw)
        yield LabelledPair(kind, said(meant, draft, draw), said(meant, expert, draw), same)


def _sides(meant: Meant, same: bool, draw: random.Random) -> tuple[str, str]:
    one = draw.choice(meant.same)
    other = draw.choice(meant.same if same else meant.different)
    return (one, other) if draw.random() < 0.5 else (other, one)
