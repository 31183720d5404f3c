"""Scores from log-probabilities: values, range, and errors if log-probabilities are missing."""

import json
import math
import urllib.request
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.answer import Answer, Token
from bpac.errors import NoLogprobs
from bpac.scores import (
    Entropy,
    FirstTokens,
    MeanTokenProbability,
    OptionProbability,
    Otherwise,
    Perplexity,
    Score,
    SelfConsistency,
)
from bpac.testing import Reply, ScriptedServer

FROM_LOGPROBS: list[Score] = [MeanTokenProbability(), Perplexity(), Entropy(), OptionProbability()]
AVERAGES: list[Score] = [MeanTokenProbability(), Perplexity()]

logprobs = st.floats(-50.0, 0.0) | st.just(-math.inf) | st.floats(0.0, 0.01)


def place(text: str, **likeliest: float) -> Token:
    """A token with the probabilities of the most likely tokens at its position."""
    top = {name: math.log(probability) for name, probability in likeliest.items()}
    return Token(text, top.get(text, -1.0), tuple(top.values()), tuple(top))


@st.composite
def tokens(draw: st.DrawFn) -> Token:
    """A token with its log-probability and those of the most likely tokens."""
    weights = draw(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5))
    total = max(1.0, math.fsum(weights)) * (1.0 - 1e-3)
    top = tuple(math.log(weight) - math.log(total) if weight > 0.0 else -math.inf for weight in weights)
    return Token("A", draw(logprobs), top, tuple("ABCDE"[: len(top)]))


@given(st.lists(tokens(), min_size=1, max_size=8))
def test_scores_lie_between_0_and_1(drawn: list[Token]) -> None:
    """Scores are in [0, 1] for all log-probabilities, including infinite and rounded ones, or raise an error."""
    for score in FROM_LOGPROBS:
        try:
            value = score(Answer("A", tokens=tuple(drawn)))
        except NoLogprobs:
            assert isinstance(score, OptionProbability)
        else:
            assert 0.0 <= value <= 1.0


@given(st.lists(st.floats(-20.0, 0.0), min_size=1, max_size=8), st.data())
def test_a_likelier_token_never_raises_the_uncertainty(values: list[float], data: st.DataObject) -> None:
    """Both averages decrease if the probability of any token increases."""
    index = data.draw(st.integers(0, len(values) - 1))
    raised = [*values]
    raised[index] = data.draw(st.floats(values[index], 0.0))
    for score in AVERAGES:
        before, after = (
            score(Answer("a", tokens=tuple(Token("a", value) for value in drawn))) for drawn in (values, raised)
        )
        assert after <= before + 1e-12


@given(st.lists(st.floats(-20.0, 0.0), min_size=1, max_size=8))
def test_perplexity_is_at_least_mean_token_probability(values: list[float]) -> None:
    """The geometric mean is at most the arithmetic mean."""
    draft = Answer("a", tokens=tuple(Token("a", value) for value in values))
    assert Perplexity()(draft) >= MeanTokenProbability()(draft) - 1e-12


@given(st.floats(0.01, 0.5), st.floats(0.0, 1.0))
def test_entropy_grows_towards_equal_probabilities(share: float, towards: float) -> None:
    """For two tokens, the entropy grows as their probabilities become equal; it is 0 for a certain token."""
    nearer = share + (0.5 - share) * towards
    low, high = (Entropy()(Answer("a", tokens=(place("a", a=1.0 - part, b=part),))) for part in (share, nearer))
    assert low <= high + 1e-9
    assert Entropy()(Answer("a", tokens=(place("a", a=1.0),))) == 0.0


def test_unlisted_tokens_count_as_one_more_token_in_the_entropy() -> None:
    """Three equal probabilities, one of them unlisted, give the largest entropy."""
    assert Entropy()(Answer("a", tokens=(place("a", a=1 / 3, b=1 / 3),))) == pytest.approx(1.0)


def test_scores_agree_with_the_raw_response() -> None:
    """Each score equals a direct computation from the JSON of a response."""
    generated = (
        place("The", The=0.9, A=0.05),
        place(" answer", **{" answer": 0.6, " reply": 0.3, " word": 0.1}),
        place(" B", **{" B": 0.5, " C": 0.2, "B": 0.1, " the": 0.1}),
    )
    body = {"messages": [{"role": "user", "content": "?"}], "logprobs": True, "top_logprobs": 4}
    with ScriptedServer(Reply(tokens=generated)) as server:
        asked = urllib.request.Request(f"{server.base_url}/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(asked) as response:
            raw: dict[str, Any] = json.load(response)
    listed = raw["choices"][0]["logprobs"]["content"]
    draft = Answer.from_openai(raw)

    probabilities = [math.exp(entry["logprob"]) for entry in listed]
    assert MeanTokenProbability()(draft) == pytest.approx(1 - sum(probabilities) / 3)
    assert Perplexity()(draft) == pytest.approx(1 - math.prod(probabilities) ** (1 / 3))
    entropies = []
    for entry in listed:
        masses = [math.exp(other["logprob"]) for other in entry["top_logprobs"]]
        masses = [mass for mass in [*masses, 1 - sum(masses)] if mass > 1e-12]
        entropies.append(-sum(mass * math.log(mass) for mass in masses) / math.log(len(entry["top_logprobs"]) + 1))
    assert Entropy()(draft) == pytest.approx(sum(entropies) / 3)
    assert OptionProbability()(draft) == pytest.approx(1 - 0.6 / 0.8)
    assert FirstTokens(Perplexity(), 1)(draft) == pytest.approx(1 - probabilities[0])


@pytest.mark.parametrize("score", FROM_LOGPROBS)
@pytest.mark.parametrize(
    ("draft", "error"),
    [
        (Answer("a"), "request them with logprobs=true"),
        (Answer("", tokens=()), "no tokens"),
        (Answer("A", tokens=(place("A", A=0.5), Token("b", math.nan, (0.0,), ("b",)))), "log-probability nan"),
        (Answer("A", tokens=(place("A", A=0.5), Token("b", 0.02, (0.0,), ("b",)))), "at most 0"),
        (Answer("A", tokens=(place("A", A=0.5),), completion_tokens=3), "1 tokens out of 3"),
    ],
)
def test_missing_or_invalid_log_probabilities_are_an_error(score: Score, draft: Answer, error: str) -> None:
    """The score raises ``NoLogprobs``, and the fallback of ``Otherwise`` is used."""
    with pytest.raises(NoLogprobs, match=error):
        score(draft)
    assert Otherwise(score, 1)(draft) == 1.0
    assert Otherwise(score, SelfConsistency())(draft, [Answer("c"), draft]) == 0.5


@pytest.mark.parametrize("score", [Entropy(), OptionProbability()])
def test_missing_likeliest_tokens_are_an_error(score: Score) -> None:
    """Scores that need the most likely tokens name the request field if the server listed none."""
    with pytest.raises(NoLogprobs, match="top_logprobs"):
        score(Answer("A", tokens=(Token("A", -0.1),)))


@pytest.mark.parametrize("score", AVERAGES)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.0,), (0.0, 0.0)),
        ((1e-7, 0.01), (0.0, 0.0)),
        ((-math.inf,), (1.0, 1.0)),
        ((-math.inf, 0.0), (0.5, 1.0)),
        ((-math.inf, 0.01), (0.5, 1.0)),
        ((-9999.0, 0.0), (0.5, 1.0)),
    ],
)
def test_extreme_log_probabilities_are_accepted(
    score: Score, values: tuple[float, ...], expected: tuple[float, float]
) -> None:
    """Slightly above 0 means certain; minus infinity, or what servers write for it, means probability 0."""
    draft = Answer("a", tokens=tuple(Token("a", value) for value in values))
    assert score(draft) == expected[AVERAGES.index(score)]


def test_reasoning_tokens_count_if_they_are_listed() -> None:
    """Reasoning is part of the average if its tokens are listed; unlisted reasoning is not an error."""
    thinking = Answer("b", reasoning="a", tokens=(Token("a", math.log(0.5)), Token("b", 0.0)), completion_tokens=2)
    assert MeanTokenProbability()(thinking) == pytest.approx(0.25)
    unlisted = Answer("b", reasoning="a long thought", tokens=(Token("b", 0.0),), completion_tokens=100)
    assert MeanTokenProbability()(unlisted) == 0.0


@given(st.lists(st.floats(-20.0, 0.0), min_size=4, max_size=12), st.integers(4, 12))
def test_the_score_of_the_first_tokens_does_not_depend_on_the_rest(values: list[float], seen: int) -> None:
    """Any beginning that is long enough has the same score as the complete draft."""
    score = FirstTokens(MeanTokenProbability(), 4)
    listed = tuple(Token("a", value) for value in values)
    whole = Answer("a" * len(values), tokens=listed, completion_tokens=len(values))
    assert score(Answer("a" * seen, tokens=listed[:seen])) == score(whole)
    assert score(whole) == MeanTokenProbability()(Answer("aaaa", tokens=listed[:4]))


def test_a_short_draft_is_scored_completely() -> None:
    """A draft with fewer tokens than ``count`` is scored with all of its tokens."""
    assert FirstTokens(MeanTokenProbability(), 9)(Answer("a", tokens=(Token("a", math.log(0.5)),))) == 0.5
