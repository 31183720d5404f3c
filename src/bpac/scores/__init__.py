"""Scores: how uncertain a draft is, from its log-probabilities, its stated confidence or further samples."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from bpac.arguments import one_of
from bpac.errors import SettingsError
from bpac.scores.agreement import AgreementAndConfidence
from bpac.scores.confidence_words import VerbalizedWords, confidence_in_words
from bpac.scores.consistency import SelfConsistency, same_words
from bpac.scores.equally_sure import EquallySure
from bpac.scores.logprobs import Entropy, MeanTokenProbability, Perplexity
from bpac.scores.option_probability import OptionProbability
from bpac.scores.score import Needs, Score
from bpac.scores.verbalized import Verbalized, stated_confidence, with_suffix, without_confidence
from bpac.scores.wrappers import FirstTokens, Otherwise

__all__ = [
    "SCORES",
    "AgreementAndConfidence",
    "Entropy",
    "EquallySure",
    "FirstTokens",
    "MeanTokenProbability",
    "Needs",
    "OptionProbability",
    "Otherwise",
    "Perplexity",
    "Score",
    "SelfConsistency",
    "Verbalized",
    "VerbalizedWords",
    "confidence_in_words",
    "has_few_values",
    "named_score",
    "same_words",
    "stated_confidence",
    "with_suffix",
    "without_confidence",
]

SCORES: dict[str, Callable[..., Score]] = {
    "mean_token_probability": MeanTokenProbability,
    "perplexity": Perplexity,
    "entropy": Entropy,
    "verbalized": Verbalized,
    "verbalized_words": VerbalizedWords,
    "agreement_and_confidence": AgreementAndConfidence,
    "self_consistency": SelfConsistency,
    "option_probability": OptionProbability,
    "none": EquallySure,
}


def has_few_values(score: Score) -> bool:
    """Whether many drafts have exactly the same score, as with stated confidences, so that dithering is of use.

    >>> has_few_values(named_score("verbalized", otherwise=1.0)), has_few_values(Entropy())
    (True, False)
    """
    if isinstance(score, Otherwise):
        return has_few_values(score.score)
    return isinstance(score, Verbalized | VerbalizedWords | SelfConsistency | AgreementAndConfidence)


def named_score(
    name: str, *, first_tokens: int | None = None, otherwise: float | str | None = None, **settings: Any
) -> Score:
    """The score with a name and its settings, as in a configuration file.

    Parameters
    ----------
    name: one of ``SCORES``.
    first_tokens: score only this many tokens from the start of the draft (default: all tokens).
    otherwise: the uncertainty, or the name of another score, for drafts that this score cannot be computed for
        (default: such drafts have no score).
    settings: the score's own settings.

    >>> named_score("entropy", top=5, otherwise=1.0)
    Otherwise(score=Entropy(top=5), fallback=1.0)
    """
    one_of(name, "score", tuple(SCORES))
    kind: Any = SCORES[name]
    known = [field.name for field in fields(kind)]
    if unknown := sorted(set(settings) - set(known)):
        knows = ", ".join([*known, "first_tokens", "otherwise"])
        raise SettingsError(f'score "{name}" has no setting {unknown[0]!r}; its settings are {knows}')
    score: Score = kind(**settings)
    if otherwise is not None and "none" in (name, otherwise):
        raise SettingsError('score "none" is the same for every draft: leave otherwise out')
    if first_tokens is not None:
        if not score.needs.logprobs:
            raise SettingsError(f'first_tokens does not fit score "{name}", which needs the whole answer')
        score = FirstTokens(score, first_tokens)
    if otherwise is None:
        return score
    return Otherwise(score, named_score(otherwise) if isinstance(otherwise, str) else otherwise)
