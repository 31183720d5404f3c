"""How a demo puts its numbers into words."""

from collections.abc import Mapping
from typing import Any

LONGEST = "longest_answer_assumed"


def standing(game: Mapping[str, Any]) -> list[str]:
    """Where a game stands: threshold, expert calls, tokens, certificate and open rounds, a line each.

    Parameters
    ----------
    game: as ``bpac status --json`` puts it.
    """
    return [
        row("threshold", f"{game['threshold']:.4g}", "drafts less uncertain than this are kept"),
        row("expert calls", _share(game["expert_call_rate"]), f"{game['expert_calls']:,} of {game['steps']:,}"),
        row("tokens saved", f"{game['savings']['tokens_saved']:,.0f}", _saved(game["savings"])),
        row("expert alone", f"{game['savings']['always_tokens']:,.0f}", "tokens it would have generated, estimated"),
        row("certificate", *_certificate(game["certificate"])),
        row("open rounds", f"{game['owed']:,}", _given_up(game["forfeits"])),
    ]


def in_short(game: Mapping[str, Any]) -> str:
    """The same in one line."""
    certificate = game["certificate"]
    return (
        f"threshold {game['threshold']:.4g}, expert calls {_share(game['expert_call_rate'])}, "
        f"tokens saved {game['savings']['tokens_saved']:,.0f}, served loss ≤ {certificate['average_upper']:.2%} "
        f"with {certificate['confidence']:.0%} confidence, open {game['owed']}"
    )


def row(name: str, value: str, remark: str = "") -> str:
    """A line of a table.

    >>> row("dashboard", "http://127.0.0.1:8800/dashboard")
    '  dashboard      http://127.0.0.1:8800/dashboard'
    """
    return f"  {name:<15}{value:<11}{remark}".rstrip()


def _share(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.1%}"


def _saved(savings: Mapping[str, Any]) -> str:
    least, most, assumed = (savings[name] for name in ("tokens_saved_at_least", "tokens_saved_at_most", LONGEST))
    confidence = f"{savings['confidence']:.0%}"
    if most is None:
        return f"at least {least:,.0f} with {confidence} confidence"
    condition = "" if assumed is None else f"; the latter if no answer exceeds {assumed:,.0f} tokens"
    return f"{least:,.0f} to {most:,.0f} ({confidence} each{condition})"


def _certificate(certificate: Mapping[str, Any]) -> tuple[str, str]:
    remark = f"lost a round so far, with {certificate['confidence']:.0%} confidence, whenever you look"
    return f"≤ {certificate['average_upper']:.2%}", remark


def _given_up(forfeits: Mapping[str, int]) -> str:
    return f"and {sum(forfeits.values()):,} given up; each counts as loss 1" if forfeits else ""
