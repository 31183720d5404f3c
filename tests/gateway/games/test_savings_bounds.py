"""The bounds on what was saved, by simulation: at all times, on any stream, with late or missing outcomes."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from bpac.gateway.games.money.savings import ALPHA, Savings
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Resolved
from tests.promise.test_promise import most_explained

STREAMS, ROUNDS = 200, 300
DRAFT, JUDGE = 20, 30


def decided(step: int, propensity: float, call_expert: bool) -> Decision:
    """A decision of which only the coin matters."""
    threshold = 0.0 if propensity == 1.0 else 0.5
    return Decision(step, 0.1, threshold, propensity, propensity, call_expert, serve_draft=not call_expert)


# Given the rounds so far, in which the expert was asked or not, how much it would generate next.
Law = Callable[[Sequence[bool], random.Random], int]


def steady(_: Sequence[bool], dice: random.Random) -> int:
    """Most answers are short, some are long."""
    return min(4000, 1 + int(dice.lognormvariate(5.0, 1.2)))


def even(_: Sequence[bool], __: random.Random) -> int:
    """All answers are of one length."""
    return 500


def hostile(asked: Sequence[bool], _: random.Random) -> int:
    """Answers get longer the longer the expert has not been asked."""
    since = next((count for count, one in enumerate(reversed(asked)) if one), len(asked))
    return min(3000, 10 + 100 * since)


def either(_: Sequence[bool], dice: random.Random) -> int:
    """Answers are short or long."""
    return dice.choice((10, 1000))


class Failed(NamedTuple):
    """Whether bounds ever failed: the proved ones, and the normal ones that were reported once."""

    below: bool
    above: bool
    normal_below: bool
    normal_above: bool


def followed(law: Law, seed: int, *, late: int) -> Failed:
    """Check the bounds after every entry of a game whose outcomes come late or never."""
    dice, savings = random.Random(seed), Savings()
    asked: list[bool] = []
    waiting: list[tuple[Entry, dict[str, Any]]] = []
    truth = variance = longest = 0.0
    below = above = normal_below = normal_above = False
    for step in range(1, ROUNDS + 1):
        propensity = 1.0 if step <= 20 else 0.3 if step < 150 else 0.1
        generated = law(asked, dice)
        asked.append(dice.random() < propensity)
        savings.add(decided(step, propensity, asked[-1]), {"draft_tokens": DRAFT})
        if asked[-1]:
            note = {"expert_tokens": generated, "judge_tokens": JUDGE, "propensity": propensity}
            waiting.append((Resolved(step, 0.0), note))
            variance += generated**2 * (1.0 - propensity) / propensity**2
        else:
            truth += generated
        longest = max(longest, generated)
        moved = asked[-1]
        while len(waiting) > late:
            entry, note = waiting.pop(0)
            # The tokens of some will never be known: long answers time out, once there is something to hide.
            lost = late and note["expert_tokens"] == 1000 and note["propensity"] < 1.0
            savings.add(entry, {"propensity": note["propensity"]} if lost else note)
        if moved or step == ROUNDS:
            report = savings.report().to_json()
            saved = truth - report["draft_tokens"] - report["judge_tokens"]
            below = below or saved < report["tokens_saved_at_least"] - 1e-6
            if report["tokens_saved_at_most"] is not None and (report["longest_answer_assumed"] or 0) >= longest:
                above = above or saved > report["tokens_saved_at_most"] + 1e-6
            spread = 1.959964 * math.sqrt(variance)
            normal_below = normal_below or saved < report["tokens_saved"] - spread
            normal_above = normal_above or saved > report["tokens_saved"] + spread
    return Failed(below, above, normal_below, normal_above)


@pytest.mark.parametrize("law", [steady, even, hostile])
def test_the_bounds_hold_at_all_times(law: Law) -> None:
    """Each fails at some time in at most a share α of streams; the normal interval, checked as often, in many more."""
    failed = [followed(law, seed, late=0) for seed in range(STREAMS)]
    allowed = most_explained(STREAMS, ALPHA)
    assert sum(one.below for one in failed) <= allowed
    assert sum(one.above for one in failed) <= allowed
    # The upper end is always too sure of itself; the lower one where answers are even.
    assert sum(one.normal_above for one in failed) > allowed
    assert sum(one.normal_below for one in failed) > allowed or law is not even


def test_the_bounds_hold_with_late_or_missing_outcomes() -> None:
    """Long answers are missing; they count as 0 for the lower bound and as the longest for the upper bound."""
    failed = [followed(either, seed, late=12) for seed in range(STREAMS // 5)]
    allowed = most_explained(len(failed), ALPHA)
    assert sum(one.below for one in failed) <= allowed
    assert sum(one.above for one in failed) <= allowed


def test_the_bounds_get_tight() -> None:
    """After many rounds the lower bound is at least four fifths of what was saved, and the upper bound is near it."""
    dice, savings, truth = random.Random(3), Savings(), 0
    for step in range(1, 20_001):
        generated, asked = steady([], dice), dice.random() < 0.1
        truth += 0 if asked else generated
        savings.add(decided(step, 0.1, asked), {"draft_tokens": DRAFT})
        if asked:
            savings.add(Resolved(step, 0.0), {"expert_tokens": generated, "propensity": 0.1})
    report, saved = savings.report().to_json(), truth - 20_000 * DRAFT
    assert 0.8 * saved < report["tokens_saved_at_least"] < saved < report["tokens_saved_at_most"] < 1.3 * saved
