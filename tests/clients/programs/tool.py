"""The tool and the class of structured answers that clients are given."""

from collections.abc import Callable

from pydantic import BaseModel


class Answer(BaseModel):
    """An answer with the model that gave it."""

    answer: int
    by: str


def recording_add() -> tuple[Callable[[int, int], int], list[dict[str, int]]]:
    """A tool for clients that call tools by themselves, and the list of the arguments it is called with."""
    calls: list[dict[str, int]] = []

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        calls.append({"a": a, "b": b})
        return a + b

    return add, calls
