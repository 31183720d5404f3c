"""Whether two texts give the same answer: equal, different or unknown, never a guess."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.grading.equality import same_final, same_text
from bpac.grading.mathematics.exact_equivalence import same_result
from bpac.grading.text.answer_text import LONGEST_ANSWER, Verdict

PYTHON = "```python\nif ready:\n    start()\n    stop()\n```"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\\boxed{St. Louis}", "\\boxed{St. Petersburg}"),
        ("The answer is George W. Bush.", "The answer is George W. Carver."),
        ("The answer is:\n1. Paris\n2. Rome", "The answer is:\n1. Paris\n2. Oslo"),
        (f"Here is the answer:\n{PYTHON}", "Here is the answer:\n```python\nif ready:\n    halt()\n```"),
        (PYTHON, PYTHON.replace("ready", "not_ready")),
        ("I would go with C.", "I would go with D."),
        ('{"a": 1}', '{"a": 2}'), ('{"a": 1}', '{"a": "1"}'), ("[1, 2]", "[2, 1]"), ('{"a": 1}', '{"a": true}'),
        ("41", "42"), ("5 km", "6 km"), ("-5", "5"), ("Yes", "No"), ("True.", "False"), ("__init__", "init"),
        ("答案是41。", "答案是42。"), ("Die Antwort lautet Bonn.", "Die Antwort lautet Wien."),
    ],
)  # fmt: skip
def test_different_answers_are_called_different(one: str, other: str) -> None:
    """Names, lists, code, JSON, options and numbers are compared completely."""
    assert same_final(one, other) is False
    assert same_final(other, one) is False
    assert same_final(f"Let me see.\n\n{one}", one) is not False


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("So it is \\boxed{42}.", "The answer is 42."), ("#### 42", "42.0"), ("1,234,567", "1234567"),
        ("I would go with C.", "The answer is (C)."), ("A is too small. I'd pick C.", "**C**"), ("(C)", "Option C"),
        ("The answer is St. Louis.", "\\boxed{\\text{St. Louis}}"), ("Blue", "blue"), ("yes", "**Yes.**"),
        ('{"a": 1, "b": [1]}', '```json\n{"b": [1.0], "a": 1}\n```'), ("1. a\n2. b", "The answer is:\n\n1) a\n2) b"),
        (f"Here is the answer:\n{PYTHON}", f"Sure! Here is the code:\n\n{PYTHON}\n"),
        ("**Answer: B**", "Answer: B\n\nExplanation: it barks."), ("Since 2 + 2 = 4, the answer is 4.", "4"),
        ("4\n\nI hope this helps!", "The answer is 4."), ("Die Antwort lautet 4.", "答案：4"),
        ("Réponse : 4", "Ответ: 4"),
        ("It’s Zürich", "It's Zu\u0308rich"), ("<think>The answer is 3.</think>The answer is 4.", "4"),
    ],
)  # fmt: skip
def test_formatting_does_not_change_an_answer(one: str, other: str) -> None:
    """Marks, typography, numbering and the order of keys do not change an answer."""
    assert same_final(one, other) is True
    assert same_final(other, one) is True


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # A common beginning or a common part does not make two answers equal.
        ("The answer is Paris.", "The answer is Paris, or else Lyon."), ("The answer is 4. Or rather 5.", "4"),
        ("The answer is Paris.", "The answer is not Paris."), ("4", "at least 4"), ("(A)", "(A) and (B)"),
        # Text around a box changes its meaning.
        ("-\\boxed{5}", "\\boxed{5}"), ("It is not $\\boxed{5}$", "5"), ("\\boxed{5} km", "\\boxed{5}"),
        ("\\boxed{5}\\%", "5"),
        ("x > \\boxed{5}", "5"), ("x != \\boxed{5}", "5"), ("$2\\cdot\\boxed{5}$", "5"), ("about \\boxed{5}", "5"),
        # Several marks, or marks that contradict each other.
        ("\\boxed{1} or rather \\boxed{2}", "\\boxed{2}"), ("The answer is 4.\nNo, the answer is 5.", "5"),
        ("x = \\boxed{5}, y = \\boxed{6}", "y = \\boxed{5}, x = \\boxed{6}"),
        ("The answer is B. I would go with C.", "C"),
        ("1. Paris\n2. The answer is 6", "The answer is 6"), ("If it rains, the answer is 6.", "The answer is 6."),
        # The same letters, digits or words with another meaning.
        ("x²", "x2"), ("CO", "Co"), ("NO", "No"), ("Aabb", "aabb"), ("Masse", "Maße"), ("1,000", "1000"),
        ("1.000", "1,000"), ("5%", "5"),
        ("$5", "5"), ("5 km", "5000 m"), ("3.10", "3.1"), ("007", "7"), ("[1, 2]", "(1, 2)"), ("12 3", "1 23"),
        ("A dog", "A"),
        ("1 2\n3 4", "1\n2 3 4"), ("1. a\n2. b", "1. b\n2. a"), ("Yes", "True"), ("\\frac{1}{2}", "\\frac{2}{4}"),
        ('"5"', "5"), ("- 5", "* 5"), ("```make\na:\n\tb\n```", "```make\na:\n    b\n```"),
        ("```py\na\n```", "```js\na\n```"),
        # Ambiguous or broken JSON.
        ('{"a": 1, "a": 2}', '{"a": 2}'), ('{"a": 1', '{"a": 1}'),
        # Nothing to compare.
        ("", "4"), ("<think>It is 4", "4"), ("<think>", "4"), ("<think>4</think>", "4"), ("Answer: see above.", "4"),
    ],
)  # fmt: skip
def test_doubtful_pairs_are_unknown(one: str, other: str) -> None:
    """Answers that cannot be compared reliably are called neither equal nor different."""
    assert same_final(one, other) is None
    assert same_final(other, one) is None


@pytest.mark.parametrize(
    "words",
    [
        "{}. I hope this answer is helpful.", "{}\n\nMy answer is based on common knowledge.",
        "(a) {}\n(b) The answer is 6.",
        "Use {}.\nOption: fast", "Here are the cities to {}:\n- Bonn\n- Rome", "Verdict: yes\n\nReason: {}",
        "It is {}.\n#### Notes\nSee the table.", "{}\n\nAnswer: see above.", "1. {}\n2. I would go with C.",
    ],
)  # fmt: skip
def test_a_common_ending_does_not_make_answers_equal(words: str) -> None:
    """A sentence that only sounds like an answer does not replace the text before it."""
    assert not same_final(words.format("London"), words.format("Paris"))


@pytest.mark.parametrize("equal", [same_final, same_text, same_result])
def test_every_text_equals_itself_and_order_does_not_matter(equal: object) -> None:
    """Verdicts are symmetric, and a text that is not empty equals itself."""
    assert callable(equal)
    rng = random.Random(5)
    parts = [
        "The answer is ",
        "\\boxed{",
        "}",
        "4",
        "St. ",
        "Paris",
        "\n",
        "\n\n",
        "**",
        "- ",
        "1. ",
        "$",
        "```",
        '"',
        "{",
        ". ",
        "(C)",
    ]
    for _ in range(300):
        one, other = ("".join(rng.choices(parts, k=rng.randint(1, 8))) for _ in range(2))
        assert equal(one, one) is (True if one.strip() else None)
        assert equal(one, other) is equal(other, one)


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_breaks_the_comparison(one: str, other: str) -> None:
    """Any two texts get a verdict."""
    for equal in (same_final, same_text):
        assert equal(one, other) in (True, False, None)


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ("a  b\n\nc", "a b\nc", True), ("it’s", "it's", True), ("a", "b", False), ("CO", "Co", None),
        ("a b", "ab", None),
        ("if a:\n  b()\nc()", "if a:\n  b()\n  c()", None), ("- a\n  - b", "- a\n- b", None), ("", "a", None),
        ("", "", None),
    ],
)  # fmt: skip
def test_only_spacing_within_a_line_is_ignored(one: str, other: str, verdict: Verdict) -> None:
    """Spacing within a line is formatting; case, indentation and line breaks may carry meaning."""
    assert same_text(one, other) is verdict


@pytest.mark.parametrize("equal", [same_final, same_text, same_result])
def test_answers_over_the_length_limit_are_unknown(equal: object) -> None:
    """Answers over the limit are unknown, even if they are identical; the reasoning does not count."""
    assert callable(equal)
    long = "a" * (LONGEST_ANSWER + 1)
    assert equal(long, long) is None
    assert equal(long, "a") is None
    assert equal(f"<think>{long}</think>4", "4") is True


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ("\\boxed{\\frac{2}{4}}", "The answer is 0.5.", True), ("\\boxed{(x+1)^2}", "\\boxed{x^2+2x+1}", True),
        ("x = 5", "5", True), ("\\boxed{\\sqrt{8}}", "\\boxed{2\\sqrt{2}}", True), ("\\boxed{2^{10}}", "1024", True),
        ("\\boxed{2^{-200}}", "\\boxed{2^{-201}}", False), ("0.3333333333", "1/3", False), ("7", "8", False),
        ("\\boxed{2\\pi}", "\\boxed{6.283185307}", False), ("\\boxed{St. Louis}", "\\boxed{St. Gallen}", False),
        ("20%", "0.2", None), ("5%", "5", None), ("$5", "5", None), ("about 5", "5", None), ("~5", "5", None),
        ("5 km", "5 m", None),
        ("5-10", "-5", None), ("5–10", "-5", None), ("1,5", "1.5", None), ("1,2", "1, 2", None),
        ("x = 5", "y = 5", None),
        ("(1, 2)", "[1, 2]", None), ("(1, 2)", "(2, 1)", None), ("1/2x", "x/2", None), ("2^10", "1024", None),
        ("\\boxed{e^{x}}", "2", None),
    ],
)  # fmt: skip
def test_results_are_equal_only_if_exactly_equal(one: str, other: str, verdict: Verdict) -> None:
    """Formulas are equal only if they are exactly equal; ambiguous formulas are unknown."""
    assert same_result(one, other) is verdict
    assert same_result(other, one) is verdict
