"""Findings about a gateway and its models: what was checked, how it went and what to do."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of one check.

    Parameters
    ----------
    check: what was checked: ``reachable``, ``key``, ``model``, ``answer``, ``score``, ``thinking`` for a model.
    message: what was found, in a few words.
    level: ``ok``; ``warning`` if it works, but perhaps not as intended; ``error`` if it does not work.
    remedy: what the operator can do; empty if nothing is to be done.
    """

    check: str
    message: str
    level: Level = "ok"
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}" if self.remedy else self.message

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


def worst(findings: Sequence[Checked]) -> Level:
    """The worst level of some findings.

    >>> worst([Checked("key", "accepted"), Checked("thinking", "on", "warning")])
    'warning'
    """
    levels: tuple[Level, ...] = ("error", "warning", "ok")
    return next((level for level in levels if any(one.level == level for one in findings)), "ok")


def in_one_line(findings: Sequence[Checked]) -> str:
    """Some findings as one readable line: what is wrong first, with its remedy.

    >>> in_one_line([Checked("key", "key accepted"), Checked("score", "no score", "error", "choose another score")])
    'no score: choose another score; key accepted'
    """
    wrong = [str(one) for one in findings if one.level != "ok"]
    fine = ", ".join(one.message for one in findings if one.level == "ok")
    return "; ".join([*wrong, *([fine] if fine else [])])
