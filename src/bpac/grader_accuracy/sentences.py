"""Answers in whole sentences, in several languages, and texts that share a part but not their answer."""

import random
import unicodedata

from bpac.grader_accuracy.pair import Meant, swapped

# A sentence with a gap, and what may fill it.
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
# Texts around two different answers that end, or begin, in the same words.
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


def sentence(draw: random.Random) -> Meant:
    """A sentence with one word changed, or the same one set in another way."""
    words, fillings = draw.choice(_SENTENCES)
    filling = draw.choice(fillings)
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
    return Meant(text, same if " " in text else same[:3], (*wrong, longer, text.replace(filling, "")), whole=True)


def shared(draw: random.Random) -> Meant:
    """A text that has much in common with one that gives another answer."""
    words, filling = draw.choice(_SHARED), draw.choice(_FILLINGS)
    text, other = words.format(filling), words.format(swapped(filling, draw, _FILLINGS))
    return Meant(text, (text, f"{text}\n"), (other,), whole=True)
