r"""Generators of answers that are numbers, formulas, names or options, with equal and nearly equal variants."""

import random
from fractions import Fraction

from bpac.grader_accuracy.labelled_pair import AnswerVariants, another_choice

_UNITS = ("km", "m", "cm", "kg", "g", "s", "h", "mW", "MW", "apples", "years")
_FIRST = ("George W.", "St.", "Mt.", "Dr. John", "J. R.", "Fort", "San", "New", "Saint", "Port", "Los", "Upper")
_LAST = (
    "Louis", "Petersburg", "Bush", "Carver", "Washington", "Everest", "Fuji", "Smith", "Smythe", "Tolkien", "Jones",
    "Diego", "Francisco", "York", "Orleans", "Delhi", "Helens", "Angeles", "Moritz", "Gallen", "Étienne", "Lucia",
)  # fmt: skip
# Pairs that look similar but differ in meaning: case, script, language, sign, unit or order.
_NEAR = (
    ("CO", "Co"), ("NO", "No"), ("Aabb", "aabb"), ("TT", "Tt"), ("Masse", "Maße"), ("schon", "schön"), ("x²", "x2"),
    ("x₂", "x2"), ("mW", "MW"), ("US", "us"), ("año", "ano"), ("pêche", "péché"), ("__init__", "init"), ("*p", "p"),
    ("**kwargs", "kwargs"), ("Python 3.10", "Python 3.1"), ("1.0.5", "1.5"), ("007", "7"), ("(1, 2)", "[1, 2]"),
    ("{1}", "[1]"),
    ("5-10", "-5"), ("5–10", "-5"), ("A dog", "A"), ("not Paris", "Paris"), ("Paris", "Paris or Lyon"),
    ("2024-05-07", "2024-07-05"), ("3 May 2021", "5 March 2021"), ("10:30", "10:03"), ("5 to 10", "5 to 11"),
    ("about 5", "at least 5"), ("minus 5", "5"), ("1.000,5", "1.0005"), ("+5", "-5"), ("5%", "5"), ("$5", "5%"),
    ("大阪", "大坂町"), ("東京", "京都"), ("Москва", "Мoсквы"), ("<b>1</b>", "<b>2</b>"), ("!x", "x"), ("~x", "x"),
    ('"5"', "5"), ("x > 5", "x = 5"), ("print(“a”)", 'print("a")'), ("`a b`", "`a  b`"), ("- 5", "* 5"),
    ("≤ 5", "< 5"), ("≈ 5", "= 5"), ("n-1", "n+1"), ("10^-5", "10^5"), ("all but B", "B"), ("none", "all"),
    ("increase", "decrease"), ("valid", "invalid"), ("True", "False"), ("yes", "no"), ("Yes, but only if n > 2", "Yes"),
)  # fmt: skip


def number(rng: random.Random) -> AnswerVariants:
    """A number, with or without a unit."""
    value = rng.choice([rng.randint(-9, -2), rng.randint(2, 99), rng.randint(100, 99_999), rng.randint(10**6, 10**9)])
    text = str(value)
    others = [str(value + 1), str(value - 1), str(-value), f"{text}.5", f"{text}0", f"{text}%"]
    unit = rng.choice(_UNITS)
    if rng.random() < 0.3:
        same = (f"{value} {unit}", f"{value}.0 {unit}")
        wrong = (f"{value + 1} {unit}", f"{value} {another_choice(unit, rng, _UNITS)}", f"{-value - 1} {unit}", text)
        return AnswerVariants(same[0], same, wrong)
    grouped = f"{value:,}" if abs(value) >= 10**6 else text
    return AnswerVariants(text, (text, f"{text}.0", grouped), (*others, f"{text} {unit}"), mathematics=True)


def formula(rng: random.Random) -> AnswerVariants:
    """A fraction, a root, a power, a polynomial or a point."""
    a, b, c = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 9)
    kind = rng.randrange(5)
    wrong: tuple[str, ...]
    if kind == 0:
        value = Fraction(a, b + 10)
        text, twice = rf"\frac{{{a}}}{{{b + 10}}}", rf"\frac{{{2 * a}}}{{{2 * b + 20}}}"
        wrong = (
            rf"\frac{{{a + 1}}}{{{b + 10}}}",
            rf"\frac{{{b + 10}}}{{{a}}}",
            rf"-{text}",
            f"{float(value) + 1e-7:.9f}",
        )
        return AnswerVariants(
            text, (text, twice, f"{a}/{b + 10}", rf"\dfrac{{{a}}}{{{b + 10}}}"), wrong, mathematics=True
        )
    if kind == 1:
        text = rf"{a}\sqrt{{{b}}}"
        wrong = (rf"{a + 1}\sqrt{{{b}}}", rf"\sqrt{{{a * b}}}", rf"{a}\sqrt{{{b + 1}}}", f"{a * b**0.5:.4f}1")
        return AnswerVariants(text, (text, rf"\sqrt{{{a * a * b}}}"), wrong, mathematics=True)
    if kind == 2:
        text = f"{a}^{{{b + 10}}}"
        wrong = (f"{a}^{{{b + 11}}}", f"{a}^{{-{b + 10}}}", str(a ** (b + 10) + 1), f"{a}{b + 10}")
        return AnswerVariants(text, (text, str(a ** (b + 10)), rf"{a} \cdot {a}^{{{b + 9}}}"), wrong, mathematics=True)
    if kind == 3:
        text, expanded = f"(x+{a})^2", f"x^2+{2 * a}x+{a * a}"
        wrong = (f"(x-{a})^2", f"x^2+{2 * a}x+{a * a + 1}", f"(y+{a})^2", f"(x+{a})^3", f"x^2+{a * a}")
        return AnswerVariants(text, (text, expanded, f"x^2 + {2 * a}x + {a * a}"), wrong, mathematics=True)
    text = f"({a}, {b}, {c + 10})"
    wrong = (f"({a + 1}, {b}, {c + 10})", f"({c + 10}, {b}, {a})", f"[{a}, {b}, {c + 10}]", f"({a}, {b})")
    return AnswerVariants(text, (text, f"({a},{b},{c + 10})"), wrong, mathematics=True)


def name(rng: random.Random) -> AnswerVariants:
    """A name that begins with an abbreviation and its full stop, or that begins like another name."""
    first, last = rng.choice(_FIRST), rng.choice(_LAST)
    text = f"{first} {last}"
    other = another_choice(last, rng, _LAST)
    wrong = (
        f"{first} {other}",
        f"{another_choice(first, rng, _FIRST)} {last}",
        f"{text} {other}",
        f"{text} or {first} {other}",
    )
    return AnswerVariants(text, (text, f"**{text}**", f"{first}  {last}"), (*wrong, f"{text}, not {other}", first))


def near_miss(rng: random.Random) -> AnswerVariants:
    """Two answers that look similar but are different."""
    one, other = rng.choice(_NEAR)
    one, other = rng.choice([(one, other), (other, one)])
    return AnswerVariants(one, (one,), (other,))


def option(rng: random.Random) -> AnswerVariants:
    """The letter of an option, alone, in a few words or in a closing sentence."""
    letter = rng.choice("ABCDEFGH")
    other = another_choice(letter, rng, tuple("ABCDEFGH"))
    same = [letter, f"({letter})", f"{letter}.", f"I would go with {letter}.", f"The others fail. I'd pick ({letter})."]
    same += [f"The answer is {letter}.", f"**{letter}**", f"So the correct option is ({letter})."]
    wrong = [f"({other})", f"I would go with {other}.", f"({letter}) and ({other})", f"The answer is {other}."]
    wrong += [f"I would not go with {letter}.", f"If n is odd, the answer is {letter}.", f"Anything but {letter}."]
    wrong += [f"The answer is {other}.\n\nI would go with {letter}."]
    return AnswerVariants(same[0], tuple(same), tuple(wrong), whole=True)
