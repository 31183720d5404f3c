"""What the gateway knows of a draft before it decides: the features that scores are learned from."""

import math
from collections.abc import Sequence

from bpac.answer import Answer, Token
from bpac.errors import BpacError
from bpac.models.prompts import PROMPT_FEATURES
from bpac.routing.learning.features import LONGEST_WORD, Feature
from bpac.scores import Entropy, stated_confidence

# In the order in which the journals of new games record them. A game goes on with the features it began with.
FEATURES = (
    "draft_tokens",
    "prompt_tokens",
    "answer_length",
    "mean_log_probability",
    "least_log_probability",
    "last_log_probability",
    "unsure_tokens",
    "entropy",
    "stated_confidence",
    "tool_calls",
    "finish_reason",
    "task",
    "segment",
)
# A token below this probability is unsure: another one was likelier.
UNSURE = math.log(0.5)
# Servers write a probability of 0 as some very low number: one of them must not make a sum overflow.
LEAST_LOG_PROBABILITY = -10_000.0
# A confidence is stated at the end of an answer; the rest of a long one need not be searched.
LAST_CHARACTERS = 1000


def features_of(
    names: Sequence[str],
    answer: Answer | None,
    *,
    segment: str = "",
    task: str = "",
    prompt: Sequence[float] = (),
    complete: bool = True,
) -> tuple[Feature, ...]:
    """The features of a draft with these names, in their order; none for what is not known.

    Parameters
    ----------
    names: those that the game began with, which an earlier version may have written.
    answer: what was scored of the draft (default: none, if it cannot be what was asked for).
    segment: the segment of the request (default: empty, if the route is not divided).
    task: the task that the caller names (default: empty, if it names none).
    prompt: numbers that describe the prompt (default: none).
    complete: whether the whole draft was scored; the length of a part says nothing.

    >>> features_of(("draft_tokens", "task"), Answer("42", completion_tokens=2), task="sums")
    (2.0, 'sums')
    """
    known: dict[str, Feature] = {
        "task": word(task) if task else None,
        "segment": word(segment) if segment else None,
        **dict(zip(PROMPT_FEATURES, prompt, strict=False)),
    }
    if answer is not None:
        known |= _log_probabilities(answer)
        known["prompt_tokens"] = None if answer.prompt_tokens is None else float(answer.prompt_tokens)
        known["tool_calls"] = float(len(answer.tool_calls))
        if complete:
            known["draft_tokens"] = float(answer.completion_tokens) if answer.completion_tokens else None
            known["answer_length"] = float(len(answer.text))
            known["stated_confidence"] = _confidence(answer.text)
            known["finish_reason"] = word(answer.finish_reason)
    return tuple(known.get(name) for name in names)


def word(text: str) -> str:
    """A text as a feature: servers and callers may send anything, and the journal holds short words."""
    return text.encode("utf-8", "replace").decode()[:LONGEST_WORD]


def _log_probabilities(answer: Answer) -> dict[str, Feature]:
    """Statistics of the log-probabilities; empty if there are none."""
    tokens: Sequence[Token] = answer.tokens or ()
    known = [max(token.logprob, LEAST_LOG_PROBABILITY) for token in tokens if math.isfinite(token.logprob)]
    if not known:
        return {}
    return {
        "mean_log_probability": math.fsum(known) / len(known),
        "least_log_probability": min(known),
        "last_log_probability": known[-1],
        "unsure_tokens": sum(one < UNSURE for one in known) / len(known),
        "entropy": _entropy(answer),
    }


def _entropy(answer: Answer) -> float | None:
    """The mean entropy over the likeliest tokens; none if the server did not list them."""
    if not any(token.top for token in answer.tokens or ()):
        return None
    try:
        return Entropy()(answer)
    except BpacError:
        return None


def _confidence(text: str) -> float | None:
    """The confidence that the draft states, whether or not it is the score of the route."""
    try:
        return stated_confidence(text[-LAST_CHARACTERS:])
    except BpacError:
        return None
