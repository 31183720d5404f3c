"""Generators of answers in sentences, in several languages, and of texts that share a part but not the answer."""

import random
import unicodedata

from bpac.grader_accuracy.labelled_pair import AnswerVariants, another_choice

# A sentence with a gap, and the words that may fill it.
_SENTENCES = (
    ("The capital of the country is {}, which lies on a river.", ("Paris", "London", "Oslo", "St. Louis")),
    ("Water boils at {} degrees Celsius at sea level.", ("100", "99", "101", "10")),
    ("The treaty was signed in {} by both sides.", ("1918", "1919", "1981", "1191")),
    ("You {} mix the two liquids.", ("should", "should not", "must", "may")),
    ("Die Hauptstadt ist {}, und sie liegt am Fluss.", ("Berlin", "Bonn", "Wien", "Zürich")),
    ("Der Zug fährt {} um acht Uhr ab.", ("morgens", "abends", "nie", "immer")),
    ("La réponse se trouve {} de la page.", ("au début", "à la fin", "au milieu", "hors")),
    ("El resultado es {} que el anterior.", ("mayor", "menor", "igual", "más exacto")),
    ("La soluzione è {} per ogni valore positivo.", ("valida", "errata", "unica", "nulla")),
    ("Столица этой страны — {}.", ("Москва", "Киев", "Минск", "Рига")),
    ("这个城市在{}的北边。", ("北京", "南京", "东京", "西安")),
    ("会議は{}に始まります。", ("月曜日", "火曜日", "午前", "午後")),
)
# Texts that begin or end with the same words around two different answers.
_SHARED = (
    "{}. I hope this answer is helpful.", "{}\n\nMy answer is based on common knowledge.",
    "{}\n\nThe answer is given above.",
    "(a) {}\n(b) The answer is 6.", "1. {}\n2. The answer is 6.", "x = \\boxed{{{}}} and y = \\boxed{{6}}",
    "It is {}.\n#### Notes\nSee the table.", "{}\n\nAnswer: see above.",
    "The answer is 6 for part two; for part one it is {}.",
    "The answer is 6.\n\nWait, that is wrong. It is {}.", "If it rains, the answer is 6. Otherwise it is {}.",
    "Use {}.\n\nOption: fast", "Here are the cities to {}:\n- Paris\n- Rome", "Verdict: yes\n\nReason: {}",
    "6. {}", "The answer is 6. Or rather {}.", "The area is $\\boxed{{6}}$ and its name is {}.", "{}\n```\n6\n```",
    "$\\boxed{{6}}$ {}", "{} $\\boxed{{6}}$", "The answer is: 6\n{}", "I would say {}, but the book says: 6",
)  # fmt: skip
_FILLINGS = (
    "Paris",
    "London",
    "7",
    "8",
    "St. Louis",
    "St. Gallen",
    "yes",
    "no",
    "not",
    "minus",
    "km",
    "-",
    "x",
    "y",
    "北京",
    "%",
)


def sentence(rng: random.Random) -> AnswerVariants:
    """A sentence, the same sentence with other formatting, and sentences with one word changed."""
    words, fillings = rng.choice(_SENTENCES)
    filling = rng.choice(fillings)
    text = words.format(filling)
    same = (
        text,
        f"  {text}\n",
        unicodedata.normalize("NFD", text),
        text.replace(" ", "  "),
        words.format(f"**{filling}**"),
    )
    wrong = tuple(words.format(other) for other in fillings if other != filling)
    longer = f"{text} {words.format(wrong and fillings[0])}x"
    return AnswerVariants(
        text, same if " " in text else same[:3], (*wrong, longer, text.replace(filling, "")), whole=True
    )


def shared(rng: random.Random) -> AnswerVariants:
    """A text, and a text with another answer that shares most of its words."""
    words, filling = rng.choice(_SHARED), rng.choice(_FILLINGS)
    text, other = words.format(filling), words.format(another_choice(filling, rng, _FILLINGS))
    return AnswerVariants(text, (text, f"{text}\n"), (other,), whole=True)
