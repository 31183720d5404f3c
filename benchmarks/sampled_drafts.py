"""What one expert answer can teach if several drafts of the same question are graded against it.

With the score ``self_consistency`` a model is asked several times, and one of the answers, the draft, is served. An
audit could grade all of them. This simulation compares three ways to count them (docs/decisions/0010):

1. ``draft``: only the draft counts, as the router does it.
2. ``exchanged``: each of the answers could have been the draft, with the same probability. So the loss of the round at
   a threshold is the share of the answers that it accepts and that lose, and the probability of the audit is the mean
   over the answers. The expectation is the same and the variance is smaller.
3. ``each``: each of the answers counts as a round of its own. They are not independent, so this is not valid.

    python -m benchmarks.sampled_drafts
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal
from unittest.mock import patch

from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.envelope import EnvelopeWealth, Steps
from bpac.routing.decision import Decision
from bpac.routing.dithering import WIDTH, dithered
from bpac.routing.policies import Portfolio
from bpac.routing.router import Router

Way = Literal["draft", "exchanged", "each"]
ALPHA = 0.1
# Dithering spreads scores relative to themselves, so the score of answers that all agree must not be 0.
ALL_AGREE = 1 / 64


@dataclass(frozen=True, slots=True)
class Questions:
    """A law of questions, each with a probability that an answer to it is right.

    Parameters
    ----------
    easy, hard: shares of the questions that are mostly answered right, and mostly wrong; the others are in between.
    slips: probability that an answer to an easy question is wrong, at most.
    samples: answers to each question.
    """

    easy: float = 0.6
    hard: float = 0.15
    slips: float = 0.03
    samples: int = 5

    def answers(self, dice: random.Random) -> list[int]:
        """The answers to a question: 0 is the expert's."""
        kind, level = dice.random(), dice.random()
        right = 1.0 - self.slips * level
        if kind >= self.easy:
            right = 0.3 * level if kind >= 1.0 - self.hard else 0.3 + 0.6 * level
        # Wrong answers to some questions are mostly the same one.
        common = 1.0 if dice.random() < 0.5 else 0.3
        return [
            0 if dice.random() < right else 1 if dice.random() < common else 2 + number
            for number in range(self.samples)
        ]


def scores(answers: Sequence[int], draw: float) -> list[float]:
    """The score that each answer has if it is the draft: the share of the others that disagree, dithered."""
    others = len(answers) - 1
    shares = [sum(other != answer for other in answers) / others for answer in answers]
    return [dithered(max(share, ALL_AGREE), WIDTH, draw) for share in shares]


class ExchangedWealth(EnvelopeWealth):
    """Portfolio wealth that books the losses of all answers."""

    __slots__ = ()
    found: tuple[Steps, float] = ((), 1.0)

    def resolve(self, decision: Round, loss: float) -> None:
        """Book what the audit found at each threshold."""
        steps, propensity = self.found
        self.book(steps, propensity, decision.least_propensity)


def exchanged(decision: Decision, uncertainties: Sequence[float], losses: Sequence[float]) -> tuple[Steps, float]:
    """Where the loss of a round rises and to what, and the probability of its audit, whichever answer is the draft."""
    count, certain = len(losses), decision.least_propensity
    propensity = fmean(certain if score < decision.threshold else 1.0 for score in uncertainties)
    steps, lost = [], 0
    for score, loss in sorted(zip(uncertainties, losses, strict=True)):
        if loss:
            lost += 1
            steps.append((score, lost / count))
    # Of answers with the same score, the last has the whole loss.
    return [step for at, step in enumerate(steps) if at + 1 == len(steps) or steps[at + 1][0] > step[0]], propensity


def played(way: Way, law: Questions, epsilon: float, rounds: int, seed: int) -> Iterator[Decision]:
    """The decisions of a stream."""
    dice = random.Random(seed)
    wealth = ExchangedWealth if way == "exchanged" else EnvelopeWealth
    with patch("bpac.routing.policies.portfolio.PortfolioWealth", wealth):
        router = Router(epsilon, ALPHA, Portfolio(), seed=seed)
    for _ in range(rounds):
        answers = law.answers(dice)
        uncertainties = scores(answers, dice.random())
        losses = [float(answer != 0) for answer in answers]
        decision = router.decide(uncertainties[0])
        yield decision
        if decision.call_expert:
            ExchangedWealth.found = exchanged(decision, uncertainties, losses)
            router.observe(decision, losses[0])
        if way == "each":
            for uncertainty, loss in zip(uncertainties[1:], losses[1:], strict=True):
                further = router.decide(uncertainty)
                if further.call_expert:
                    router.observe(further, loss)


def expert_call_rate(way: Way, law: Questions, epsilon: float, rounds: int, runs: int) -> float:
    """The mean share of rounds that call the expert."""
    return fmean(decision.call_expert for seed in range(runs) for decision in played(way, law, epsilon, rounds, seed))


def main() -> None:
    """Print the expert call rates."""
    for law in (Questions(), Questions(0.5, 0.15), Questions(0.7, 0.1), Questions(samples=10)):
        for epsilon in (0.05, 0.08):
            draft, together = (expert_call_rate(way, law, epsilon, 4000, 20) for way in ("draft", "exchanged"))
            print(f"{law}, epsilon {epsilon}: draft {draft:.3f}, exchanged {together:.3f}", flush=True)


if __name__ == "__main__":
    main()
