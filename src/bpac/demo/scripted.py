"""A pair of models by script: what both say to a question, and how sure the draft is, is drawn once and for all."""

import math
from random import Random

from bpac.benchmarks.benchmark import Question
from bpac.testing import Reply, Request

# A draft of uncertainty U is wrong with this probability times U, which makes a fifth of all drafts wrong.
WRONG = 0.6
EXPERT_WRONG = 0.03
# Words of a thought: logarithm of the median, and spread.
THOUGHT = (4.4, 0.5)


def scripted_questions(count: int, seed: int) -> tuple[Question, ...]:
    """Different questions with their right answers.

    >>> question = scripted_questions(1, seed=1)[0]
    >>> question.prompt, question.reference
    ('What is 256 * 591?', 'The answer is 151296.')
    """
    factors = Random(seed).sample(range(900 * 900), count)
    pairs = [(100 + number // 900, 100 + number % 900) for number in factors]
    return tuple(
        Question(f"scripted-{number}", f"What is {one} * {other}?", _said(one * other))
        for number, (one, other) in enumerate(pairs)
    )


def scripted_reply(request: Request, draft: str) -> Reply:
    """What a model says: the same to the same question always.

    Parameters
    ----------
    request: the question is its last message.
    draft: the name of the model that answers at once; any other thinks first.

    >>> ask = {"messages": [{"content": "What is 6 * 7?"}]}
    >>> scripted_reply(Request(1, {"model": "thinking", **ask}), "direct").text
    'The answer is 42.'
    """
    one, other = (int(word.rstrip("?")) for word in request.question.split() if word.rstrip("?").isdecimal())
    # Both models' draws come from the question alone, in one order.
    rng = Random(request.question)
    uncertainty = rng.random() ** 2  # most drafts are rather sure
    draft_is_wrong, expert_is_wrong = rng.random() < WRONG * uncertainty, rng.random() < EXPERT_WRONG
    words, error = round(rng.lognormvariate(*THOUGHT)), rng.randint(1, 9)
    if request.body["model"] == draft:
        # The mean probability of the tokens is what the gateway scores a draft by.
        return Reply(_said(one * other + error * draft_is_wrong), probability=max(1.0 - uncertainty, math.ulp(1.0)))
    return Reply(_said(one * other - error * expert_is_wrong), reasoning=" ".join(["thinking"] * words))


def _said(number: int) -> str:
    return f"The answer is {number}."
