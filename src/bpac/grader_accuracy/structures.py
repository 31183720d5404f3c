"""Generators of structured answers: lists, code, JSON and the arguments of tool calls."""

import json
import random
from typing import Any

from bpac.grader_accuracy.labelled_pair import AnswerVariants, another_choice

_THINGS = (
    "Paris", "London", "St. Louis", "apples", "42", "the third one", "Berlin", "鈴木", "Zürich", "3.5 kg", "blue whale",
    "São Paulo", "x + 1", "no", "Dr. Who", "Москва",
)  # fmt: skip
_FUNCTIONS = (
    ("python", "def f(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total"),
    ("python", "if ready:\n    start()\n    stop()\nlog()"),
    ("python", 'print("a", "b")\nprint("c")'),
    ("js", "function f(a, b) {\n  return a - b;\n}"),
    ("sql", "SELECT name FROM users\nWHERE age > 18\nORDER BY name;"),
    ("", "rm -r ./build\nmake all"),
)
# Changes to code, made one at a time.
_EDITS = (
    ("+=", "-="), ("a - b", "b - a"), (" > ", " >= "), ("    stop()", "stop()"), ("range(n)", "range(n + 1)"),
    ('"a", "b"', '"b", "a"'), ("./build", "./ build"), ("total = 0", "total = 1"), ("name;", "age;"), ("\n", "\n\n# "),
    ("f(", "g("), ("make all", "make ALL"), ("log()", "    log()"), ("return", "yield"), ('"c"', '"C"'),
    ("users", "Users"),
)  # fmt: skip


def listing(rng: random.Random) -> AnswerVariants:
    """A list with numbers or bullets, and lists with other items or another order."""
    items = rng.sample(_THINGS, rng.randint(2, 5))
    at = rng.randrange(len(items))
    rest = tuple(thing for thing in _THINGS if thing not in items)
    changed = [*items[:at], rng.choice(rest), *items[at + 1 :]]
    marks = rng.choice((("{}. ", "{}) "), ("- ", "* ")))
    write = rng.choice(marks)
    same = tuple(_listed(items, mark) for mark in marks)
    others = (changed, items[:-1], [*items, rng.choice(rest)], items[::-1], [*items[:-1], f"not {items[-1]}"])
    return AnswerVariants(_listed(items, write), same, tuple(_listed(other, write) for other in others))


def _listed(items: list[str], mark: str) -> str:
    return "\n".join(mark.format(number) + item for number, item in enumerate(items, start=1))


def code(rng: random.Random) -> AnswerVariants:
    """A block of code, and the same code changed in one place."""
    language, text = rng.choice(_FUNCTIONS)
    edits = [(old, new) for old, new in _EDITS if old in text]
    wrong = tuple(_fenced(language, text.replace(old, new, 1)) for old, new in edits)
    more = _fenced(language, f"{text}\ndone()")
    return AnswerVariants(
        _fenced(language, text), (_fenced(language, text), _fenced(language, f"{text}  \n")), (*wrong, more)
    )


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def json_text(rng: random.Random) -> AnswerVariants:
    """A JSON object, the same object with its keys in another order, and objects with one value changed."""
    value, others = _values(rng)
    texts = (json.dumps(value), json.dumps(dict(reversed(value.items())), indent=2, ensure_ascii=False))
    same = (*texts, f"```json\n{texts[1]}\n```")
    wrong = tuple(json.dumps(other) for other in others)
    twice = texts[0].replace("{", '{"id": 0, ', 1)
    return AnswerVariants(texts[0], same, (*wrong, twice, texts[0] + "\n" + wrong[0], "[" + texts[0] + "]"), whole=True)


def call_arguments(rng: random.Random) -> AnswerVariants:
    """The arguments of a tool call, and arguments with one value changed."""
    value, others = _values(rng)
    same = (json.dumps(value), json.dumps(dict(reversed(value.items())), separators=(",", ":")))
    wrong = (*(json.dumps(other) for other in others), same[0][:-1], same[0].replace("{", '{"id": 0, ', 1))
    return AnswerVariants(same[0], same, wrong, whole=True)


def _values(rng: random.Random) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    number = rng.randint(1, 99)
    value: dict[str, Any] = {
        "id": number,
        "name": rng.choice(_THINGS),
        "tags": rng.sample(_THINGS, 2),
        "big": 10**17 + number,
        "inner": {"on": True, "rate": number + 0.5, "none": None},
    }
    inner, tags = value["inner"], value["tags"]
    others = [
        value | {"id": number + 1}, value | {"id": str(number)}, value | {"id": True}, value | {"tags": tags[::-1]},
        value | {"name": another_choice(value["name"], rng, _THINGS)}, value | {"name": value["name"] + " "},
        value | {"big": 10**17 + number + 1}, value | {"inner": inner | {"on": 1}},
        value | {"inner": inner | {"none": ""}},
        value | {"inner": {"on": True, "rate": number + 0.5}}, value | {"extra": None},
        {**value, "Name": value["name"]},
    ]  # fmt: skip
    return value, rng.sample(others, 3)
