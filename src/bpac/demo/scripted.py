"""Two scripted models: their answers, and the uncertainty of the draft, are random functions of the question."""

import math
from random import Random

from bpac.benchmarks.benchmark import Question
from bpac.testing import Reply, Request

# A draft of uncertainty U is wrong with this probability times U, so that a fifth of all drafts are wrong.
WRONG = 0.6
EXPERT_WRONG = 0.03
# Number of words that the expert thinks: logarithm of the median, and standard deviation of the logarithm.
THOUGHT = (4.4, 0.5)


def scripted_questions(count: int, seed: int) -> tuple[Question, ...]:
    """Different questions with their correct answers.

    >>> question = scripted_questions(1, seed=1)[0]
    >>> question.prompt, question.reference
    ('What is 256 * 591?', 'The answer is 151296.')
    """
    factors = Random(seed).sample(range(900 * 900), count)
    pairs = [(100 + number // 900, 100 + number % 900) for number in factors]
    return tuple(
        Question(f"scripted-{number}", f"What is {one} * {other}?", _sentence(one * other))
        for number, (one, other) in enumerate(pairs)
    )


def scripted_reply(request: Request, draft: str) -> Reply:
    """The answer of a scripted model, which is always the same for the same question.

    Parameters
    ----------
    request: a request whose last message is the question.
    draft: name of the model that answers at once; any other model thinks first.

    >>> ask = {"messages": [{"content": "What is 6 * 7?"}]}
    >>> scripted_reply(Request(1, {"model": "thinking", **ask}), "direct").text
    'The answer is 42.'
    """
    one, other = (int(word.rstrip("?")) for word in request.question.split() if word.rstrip("?").isdecimal())
    # Seeded by the question alone, and drawn in a fixed order, so that both models see the same draws.
    rng = Random(request.question)
    uncertainty = rng.random() ** 2  # most drafts have a low uncertainty
    draft_is_wrong, expert_is_wrong = rng.random() < WRONG * uncertainty, rng.random() < EXPERT_WRONG
    words, error = round(rng.lognormvariate(*THOUGHT)), rng.randint(1, 9)
    if request.body["model"] == draft:
        # The gateway computes the uncertainty from the mean probability of the tokens.
        return Reply(_sentence(one * other + error * draft_is_wrong), probability=max(1.0 - uncertainty, math.ulp(1.0)))
    return Reply(_sentence(one * other - error * expert_is_wrong), reasoning=" ".join(["thinking"] * words))


def _sentence(number: int) -> str:
    return f"The answer is {number}."
