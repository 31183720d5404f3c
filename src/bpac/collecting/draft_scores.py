"""The uncertainty of a draft by every score that can be computed from its log-probabilities."""

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
# For multiple-choice questions only.
OPTION = "option_probability"
NAMES = (*SCORES, OPTION)
# The score of the paper.
DEFAULT = "mean_token_probability"


@dataclass(frozen=True, slots=True)
class DraftScores:
    """The uncertainty of a draft by several scores.

    Parameters
    ----------
    known: the uncertainty, by the name of the score.
    unknown: the reason why a score cannot be computed, by the name of the score.
    """

    known: dict[str, float] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


def score_draft(question: Question, draft: Answer) -> DraftScores:
    """Compute every score of a draft.

    >>> from bpac.answer import Token
    >>> scores = score_draft(Question("1", "6 · 7?"), Answer("42", tokens=(Token("42", -0.5),)))
    >>> {name: round(value, 3) for name, value in scores.known.items()}
    {'mean_token_probability': 0.393, 'perplexity': 0.393}
    >>> scores.unknown
    {'entropy': "token '42' has no list of the most likely tokens: request it with top_logprobs"}
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
