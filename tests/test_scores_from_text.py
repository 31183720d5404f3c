"""Scores from option letters, stated confidence and further answers, and scores by name."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.answer import Answer, Token
from bpac.errors import NoScore, SettingsError
from bpac.scores import (
    SCORES,
    FirstTokens,
    Needs,
    OptionProbability,
    Otherwise,
    Perplexity,
    SelfConsistency,
    Verbalized,
    named_score,
    stated_confidence,
    with_suffix,
    without_confidence,
)
from tests.test_scores import place


@pytest.mark.parametrize(
    ("tokens", "uncertainty"),
    [
        ((place("A", A=0.5, B=0.5), place(" is", **{" is": 1.0})), 0.5),
        ((place("(", **{"(": 1.0}), place("C", C=0.6, A=0.2, the=0.2), place(")", **{")": 1.0})), 0.25),
        ((place("A", A=0.9, B=0.1), place(" but", **{" but": 1.0}), place(" B", **{" B": 0.2, " A": 0.6})), 0.75),
        ((Token("D", math.log(0.1), (math.log(0.3), math.log(0.6)), ("A", "B")),), 0.9),
    ],
)
def test_the_last_option_letter_counts(tokens: tuple[Token, ...], uncertainty: float) -> None:
    """Its probability is relative to the letters at its position, including a sampled letter that is not listed."""
    assert OptionProbability()(Answer("", tokens=tokens)) == pytest.approx(uncertainty)


def test_the_chosen_letter_can_come_from_a_function() -> None:
    """The last position of that letter counts, and a draft without a letter has no score."""
    tokens = (place("B", B=0.5, A=0.5), place("A", A=1.0))
    assert OptionProbability(chosen=lambda draft: "B")(Answer("", tokens=tokens)) == pytest.approx(0.5)
    for score in (OptionProbability(chosen=lambda draft: None), OptionProbability("XY")):
        with pytest.raises(NoScore, match="no token of the draft is one of the option letters"):
            score(Answer("", tokens=tokens))


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("Confidence: 85%", 0.85), ("confidence: 100 %", 1.0), ("**Confidence:** 0%", 0.0), ("Confidence = 7", 0.07),
        ("Confidence: 0.7", 0.7), ("Confidence: 1.0", 1.0), ("Confidence: 7/10", 0.7), ("Confidence: 70 / 100", 0.7),
        ("my confidence is 62.5 percent.", 0.625), ("Confidence: 20%\nNo: Confidence: 90%", 0.9),
        ("Confidence level: ~ 90%.", 0.9), ("Confidence: 62,5%", 0.625), ("Confidence: 80% - I checked it", 0.8),
    ],
)  # fmt: skip
def test_the_last_stated_confidence_counts(text: str, confidence: float) -> None:
    """A confidence is read in each of the formats that models use."""
    assert stated_confidence(f"Some 42 words.\n{text}") == pytest.approx(confidence)
    assert Verbalized()(Answer(text)) == pytest.approx(1.0 - confidence)


@pytest.mark.parametrize(
    "text",
    ["", "42", "Confidence: high", "Confidence: 120%", "Confidence: -5%", "Confidence: 80-90%",
     "Confidence: 80% to 90%", "Confidence: 0.8-0.9", "Confidence: 11/10", "I am 90% sure",
     "A 95% confidence interval"],
)  # fmt: skip
def test_a_draft_without_a_clear_confidence_has_no_score(text: str) -> None:
    """A draft that does not state a number from 0 to 100 has no score, and the fallback is used."""
    with pytest.raises(NoScore):
        Verbalized()(Answer(text))
    assert Otherwise(Verbalized(), 0.8)(Answer(text)) == 0.8


def test_the_suffix_is_added_and_the_confidence_removed() -> None:
    """The suffix is added to the last question, and the confidence line is removed from the answer; nothing else."""
    suffix = Verbalized().needs.suffix
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert with_suffix(messages, suffix)[0]["content"] == "a" + suffix
    assert messages[0]["content"] == "a"
    parts = [{"role": "user", "content": [{"type": "image_url"}]}]
    assert with_suffix(parts, "!")[0]["content"] == [{"type": "image_url"}, {"type": "text", "text": "!"}]
    assert with_suffix([{"role": "system", "content": "s"}], " a?")[-1] == {"role": "user", "content": "a?"}
    assert without_confidence("42\n\n**Confidence: 85%**\n") == "42"
    for kept in ("42\n", "Confidence intervals are wide.", "Confidence: 85%\n42"):
        assert without_confidence(kept) == kept


def test_self_consistency_is_the_share_that_disagrees() -> None:
    """The share is relative to the draft or to the largest group, with the given equality."""
    draft, samples = Answer("1"), [Answer("2"), Answer("2 "), Answer("1.0")]
    assert SelfConsistency()(draft, samples) == 1.0
    assert SelfConsistency(against="majority")(draft, samples) == 0.5
    by_value = SelfConsistency(equal=lambda one, other: float(one) == float(other))
    assert by_value(draft, samples) == pytest.approx(2 / 3)
    with pytest.raises(NoScore, match="no further answers"):
        SelfConsistency()(draft)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.sampled_from(["draft", "majority"]))
def test_agreement_never_raises_the_uncertainty(texts: list[str], against: Any) -> None:
    """Shares are in [0, 1], and one more answer like the draft does not raise the share that differs."""
    score, samples = SelfConsistency(against=against), [Answer(text) for text in texts]
    before = score(Answer("a"), samples)
    assert 0.0 <= before <= 1.0
    if against == "draft":
        assert score(Answer("a"), [*samples, Answer("a")]) <= before


def test_every_score_can_be_made_by_name() -> None:
    """Every name gives its score, with settings and wrappers."""
    assert list(SCORES) == [
        "mean_token_probability", "perplexity", "entropy", "verbalized", "verbalized_words", "agreement_and_confidence",
        "self_consistency", "option_probability", "none",
    ]  # fmt: skip
    for name in SCORES:
        assert callable(named_score(name))
    wrapped = named_score("perplexity", first_tokens=4, otherwise="verbalized")
    assert wrapped == Otherwise(FirstTokens(Perplexity(), 4), Verbalized())
    assert wrapped.needs.request() == {"logprobs": True}
    assert wrapped.needs.suffix
    assert named_score("verbalized").needs.request() == {}


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("mean_token_probability", Needs(logprobs=True)),
        ("perplexity", Needs(logprobs=True)),
        ("entropy", Needs(logprobs=True, top_logprobs=10)),
        ("option_probability", Needs(logprobs=True, top_logprobs=20)),
        ("self_consistency", Needs(samples=4)),
    ],
)
def test_each_score_says_what_to_request(name: str, needs: Needs) -> None:
    """A score names the log-probabilities and samples that it needs."""
    assert named_score(name).needs == needs


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"name": "guess"}, "score must be one of mean_token_probability, perplexity"),
        ({"name": "entropy", "topp": 3}, "has no setting 'topp'; its settings are top, first_tokens, otherwise"),
        ({"name": "entropy", "top": 0}, "top must be at least 1"),
        ({"name": "entropy", "first_tokens": 0}, "first_tokens must be at least 1"),
        ({"name": "entropy", "otherwise": 1.5}, "otherwise must be a number in"),
        ({"name": "entropy", "otherwise": math.nan}, "otherwise must be a number in"),
        ({"name": "entropy", "otherwise": "guess"}, "score must be one of"),
        ({"name": "verbalized", "first_tokens": 3}, "which needs the whole answer"),
        ({"name": "self_consistency", "samples": 0}, "samples must be at least 1"),
        ({"name": "self_consistency", "against": "all"}, "against must be one of draft, majority"),
        ({"name": "self_consistency", "equal": "=="}, "equal must be a function"),
        ({"name": "option_probability", "options": "A"}, "at least two different letters"),
        ({"name": "option_probability", "options": "AA"}, "at least two different letters"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], error: str) -> None:
    """The error names the wrong setting."""
    with pytest.raises(SettingsError, match=error):
        named_score(**settings)
