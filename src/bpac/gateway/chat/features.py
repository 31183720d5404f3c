"""What the gateway knows of a draft before it decides: the features that scores are learned from."""

import math
from collections.abc import Sequence

from bpac.answer import Answer, Token
from bpac.routing.learning.features import LONGEST_WORD, Feature

# In the order in which the journal records them. A change of this list begins new games on routes that learn.
FEATURES = (
    "draft_tokens",
    "prompt_tokens",
    "answer_length",
    "mean_log_probability",
    "least_log_probability",
    "unsure_tokens",
    "tool_calls",
    "finish_reason",
    "segment",
)
# A token below this probability is unsure: another one was likelier.
UNSURE = math.log(0.5)


def features_of(answer: Answer | None, segment: str, *, complete: bool) -> tuple[Feature, ...]:
    """The features of a draft, in the order of ``FEATURES``; none for what is not known.

    Parameters
    ----------
    answer: what was scored of the draft; none if it cannot be what was asked for.
    segment: the segment of the request; empty if the route is not divided.
    complete: whether the whole draft was scored; the length of a part says nothing.

    >>> dict(zip(FEATURES, features_of(Answer("42", completion_tokens=2), "", complete=True)))["draft_tokens"]
    2.0
    """
    where = word(segment) if segment else None
    if answer is None:
        return (*(None,) * (len(FEATURES) - 1), where)
    return (
        float(answer.completion_tokens) if complete and answer.completion_tokens else None,
        None if answer.prompt_tokens is None else float(answer.prompt_tokens),
        float(len(answer.text)) if complete else None,
        *_log_probabilities(answer.tokens or ()),
        float(len(answer.tool_calls)),
        word(answer.finish_reason) if complete else None,
        where,
    )


def word(text: str) -> str:
    """A text as a feature: servers and callers may send anything, and the journal holds short words."""
    return text.encode("utf-8", "replace").decode()[:LONGEST_WORD]


def _log_probabilities(tokens: Sequence[Token]) -> tuple[float | None, float | None, float | None]:
    """Mean and least log-probability of the tokens, and the share of them that are unsure."""
    known = [token.logprob for token in tokens if math.isfinite(token.logprob)]
    if not known:
        return None, None, None
    return math.fsum(known) / len(known), min(known), sum(one < UNSURE for one in known) / len(known)
