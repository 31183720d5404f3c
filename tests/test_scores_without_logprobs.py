"""Scores that need no log-probabilities: confidence in words, and agreement with confidence."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.answer import Answer
from bpac.errors import NoScore, SettingsError
from bpac.scores import AgreementAndConfidence, VerbalizedWords, has_few_values, named_score, without_confidence
from bpac.scores.confidence_words import ASKED, EXPRESSIONS, SUFFIX, confidence_in_words

SURE, UNSURE = "42\nConfidence: almost certain", "42\nConfidence: unlikely"


def test_every_expression_that_is_asked_for_can_be_read_and_they_are_in_order() -> None:
    """What the prompt lists, the parser reads, in any usual typography; the list falls from sure to unsure."""
    values = []
    for words in ASKED:
        assert words in SUFFIX
        written = (f"Confidence: {words}", f"**Confidence:** {words.upper()}.", f"42\n- confidence = `{words}`\n")
        assert {confidence_in_words(text) for text in written} == {ASKED[words]}
        values.append(ASKED[words])
    assert values == sorted(set(values), reverse=True)


@pytest.mark.parametrize(
    "text",
    ["42", "Confidence: 85%", "Confidence: not likely", "Confidence: likely not correct", "Confidence: likely or so, 7",
     "I am almost certain.", "Confidence: WORDS", ""],
)  # fmt: skip
def test_what_is_not_an_expression_is_no_score(text: str) -> None:
    """Negations, numbers and sentences are not read as one of the expressions that they contain."""
    with pytest.raises(NoScore, match="states no confidence in words"):
        VerbalizedWords()(Answer(text))


def test_the_last_statement_counts() -> None:
    """A model that corrects itself is taken at its last word."""
    assert confidence_in_words("Confidence: likely\nNo.\nConfidence: very unlikely") == ASKED["very unlikely"]


@given(st.sampled_from(sorted(EXPRESSIONS)), st.text(alphabet="ab .\n*0", max_size=30))
def test_no_caller_sees_a_confidence_that_was_asked_for(words: str, answer: str) -> None:
    """A stated confidence is cut off, in words as in numbers; what is kept is a beginning of the text."""
    for stated in (f"Confidence: {words}", "Confidence: 85%", f"**Confidence: {words}**"):
        for text in (f"{answer}\n{stated}", f"{answer} {stated}."):
            kept = without_confidence(text)
            assert "confidence" not in kept.lower()
            assert text.startswith(kept)


@pytest.mark.parametrize(
    "text",
    [
        "We reject H0 with a confidence of 95%",
        "Confidence in banks is likely to fall.",
        "Be sure: confidence matters",
        "42",
    ],
)
def test_sentences_about_confidence_are_not_cut_off(text: str) -> None:
    """An answer may be about confidence without stating one."""
    assert without_confidence(text) == text


def test_agreement_and_confidence_are_weighed_equally() -> None:
    """Agreement is half of the score, the stated confidence the other half; samples that disagree state nothing."""
    score = AgreementAndConfidence()
    assert score(Answer(SURE), [Answer(SURE)]) == pytest.approx(1 - (1 + 0.95) / 2)
    assert score(Answer(SURE), [Answer("41\nConfidence: unlikely")]) == pytest.approx(1 - 0.95 / 2)
    assert score(Answer(SURE), [Answer(UNSURE)]) == pytest.approx(1 - (1 + (0.95 + 0.3) / 2) / 2)
    # A sample that agrees and states no confidence counts for the agreement alone.
    assert score(Answer(SURE), [Answer("42")]) == score(Answer(SURE), [Answer(SURE)])
    several = AgreementAndConfidence(samples=3)
    assert several(Answer(SURE), [Answer("42"), Answer("42"), Answer("7")]) == pytest.approx(1 - (2 / 3 + 0.95) / 2)


def test_more_agreement_and_more_confidence_never_raise_the_uncertainty() -> None:
    """The score falls in both of its parts and lies in [0, 1]."""
    score, words = AgreementAndConfidence(), sorted(ASKED, key=ASKED.__getitem__)
    for low, high in itertools.pairwise(words):
        drafts = [Answer(f"42\nConfidence: {word}") for word in (low, high)]
        for sample in (Answer("42"), Answer("41")):
            less, more = (score(draft, [sample]) for draft in drafts)
            assert 0.0 <= more < less <= 1.0
        assert score(drafts[0], [Answer("42")]) < score(drafts[0], [Answer("41")])


def test_tool_calls_agree_by_name_and_arguments() -> None:
    """The confidence of a tool call is asked for separately; calls are compared as JSON, ids are not."""

    def called(arguments: str, name: str = "add") -> Answer:
        call = {"id": arguments, "function": {"name": name, "arguments": arguments}}
        return Answer("", tool_calls=(call,), finish_reason="tool_calls", stated_confidence="Confidence: likely")

    score, draft = AgreementAndConfidence(), called('{"a": 1, "b": 2}')
    assert score(draft, [called('{"b":2.0,"a":1}')]) == pytest.approx(1 - (1 + 0.7) / 2)
    for other in (called('{"a": 1}'), called('{"a": 1, "b": 2}', "sub"), called("{"), Answer("3")):
        assert score(draft, [other]) == pytest.approx(1 - 0.7 / 2)


def test_a_reply_about_the_confidence_is_read_instead_of_the_answer() -> None:
    """An answer in JSON that contains a confidence of its own does not decide its score."""
    draft = Answer("Confidence: almost certain", stated_confidence="Confidence: very unlikely")
    assert VerbalizedWords()(draft) == pytest.approx(0.85)
    with pytest.raises(NoScore):
        VerbalizedWords()(Answer("Confidence: almost certain", stated_confidence="I do not know"))


def test_without_a_sample_or_a_confidence_there_is_no_score() -> None:
    """Half of the score is no score."""
    with pytest.raises(NoScore, match="no further answers"):
        AgreementAndConfidence()(Answer(SURE))
    with pytest.raises(NoScore, match="no confidence"):
        AgreementAndConfidence()(Answer("42"), [Answer(SURE)])
    with pytest.raises(SettingsError, match="samples must be at least 1"):
        AgreementAndConfidence(samples=0)


def test_the_scores_have_names_needs_and_few_values() -> None:
    """They can be named in a configuration, say what to ask for, and are dithered."""
    words, both = named_score("verbalized_words"), named_score("agreement_and_confidence", samples=2)
    assert words.needs.suffix == both.needs.suffix == SUFFIX
    assert words.needs.question == both.needs.question != ""
    assert (words.needs.samples, both.needs.samples, both.needs.logprobs) == (0, 2, False)
    assert has_few_values(words)
    assert has_few_values(both)
