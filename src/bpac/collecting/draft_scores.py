"""Every score that the log-probabilities of one draft allow."""

import string
from dataclasses import dataclass, field

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.errors import NoScore
from bpac.scores import Entropy, MeanTokenProbability, OptionProbability, Perplexity, Score

SCORES: dict[str, Score] = {
    "mean_token_probability": MeanTokenProbability(),
    "perplexity": Perplexity(),
    "entropy": Entropy(),
}
# Of multiple choice only.
OPTION = "option_probability"
NAMES = (*SCORES, OPTION)
# The paper's.
DEFAULT = "mean_token_probability"


@dataclass(frozen=True, slots=True)
class DraftScores:
    """The uncertainty of a draft.

    Parameters
    ----------
    known: by the name of the score.
    unknown: why a score cannot be computed, by its name.
    """

    known: dict[str, float] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


def score_draft(question: Question, draft: Answer) -> DraftScores:
    """Every score of a draft.

    >>> from bpac.answer import Token
    >>> scores = score_draft(Question("1", "6 · 7?"), Answer("42", tokens=(Token("42", -0.5),)))
    >>> {name: round(value, 3) for name, value in scores.known.items()}
    {'mean_token_probability': 0.393, 'perplexity': 0.393}
    >>> scores.unknown
    {'entropy': "token '42' came without the likeliest tokens: ask with top_logprobs"}
    """
    scores = dict(SCORES)
    if question.options:
        scores[OPTION] = OptionProbability(options=string.ascii_uppercase[: len(question.options)])
    found = DraftScores()
    for name, score in scores.items():
        try:
            found.known[name] = score(draft)
        except NoScore as error:
            found.unknown[name] = str(error)
    return found
