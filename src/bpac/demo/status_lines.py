"""The status of a demo's game as text: a small table, and one line."""

from collections.abc import Mapping
from typing import Any

LONGEST = "longest_answer_assumed"


def status_table(game: Mapping[str, Any]) -> list[str]:
    """Threshold, expert calls, tokens, loss and audits of a game, one line each.

    Parameters
    ----------
    game: the game's entry in the output of ``bpac status --json``.
    """
    return [
        table_row("threshold", f"{game['threshold']:.4g}", "drafts with a lower uncertainty are served"),
        table_row("expert calls", _share(game["expert_call_rate"]), f"{game['expert_calls']:,} of {game['steps']:,}"),
        table_row("tokens saved", f"{game['savings']['tokens_saved']:,.0f}", _saved(game["savings"])),
        table_row("expert alone", f"{game['savings']['always_tokens']:,.0f}", "tokens to answer everything, estimated"),
        table_row("certificate", *_certificate(game["certificate"])),
        table_row("ungraded", f"{game['owed']:,}", _given_up(game["forfeits"])),
    ]


def status_line(game: Mapping[str, Any]) -> str:
    """The same in one line."""
    certificate = game["certificate"]
    return (
        f"threshold {game['threshold']:.4g}, expert calls {_share(game['expert_call_rate'])}, "
        f"tokens saved {game['savings']['tokens_saved']:,.0f}, average loss ≤ {certificate['average_upper']:.2%} "
        f"with {certificate['confidence']:.0%} confidence, ungraded {game['owed']}"
    )


def table_row(name: str, value: str, remark: str = "") -> str:
    """A line of the table.

    >>> table_row("dashboard", "http://127.0.0.1:8800/dashboard")
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
    condition = "" if assumed is None else f"; the upper bound assumes answers of at most {assumed:,.0f} tokens"
    return f"between {least:,.0f} and {most:,.0f} ({confidence} confidence each{condition})"


def _certificate(certificate: Mapping[str, Any]) -> tuple[str, str]:
    remark = f"average loss per request so far, {certificate['confidence']:.0%} confidence"
    return f"≤ {certificate['average_upper']:.2%}", remark


def _given_up(forfeits: Mapping[str, int]) -> str:
    given_up = f"; {sum(forfeits.values()):,} others were given up and count as loss 1" if forfeits else ""
    return f"expert calls whose draft is not graded yet{given_up}"
