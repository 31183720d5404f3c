"""The status of a demo's game as text: a small table, and one line."""

from collections.abc import Mapping

from bpac.betting.bounds.certificate import Certificate
from bpac.gateway.games.money.savings import SavingsReport
from bpac.gateway.games.shown.status import GameStatus


def status_table(game: GameStatus) -> list[str]:
    """Threshold, expert calls, tokens, loss and audits of a game, one line each."""
    summary, savings = game.summary, game.savings
    return [
        table_row("threshold", f"{summary.threshold:.4g}", "drafts with a lower uncertainty are served"),
        table_row("expert calls", _share(summary.expert_call_rate), f"{summary.expert_calls:,} of {summary.steps:,}"),
        table_row("tokens saved", f"{savings.tokens_saved:,.0f}", _saved(savings)),
        table_row("expert alone", f"{savings.always_tokens:,.0f}", "tokens to answer everything, estimated"),
        table_row("certificate", *_certificate(summary.certificate)),
        table_row("ungraded", f"{summary.owed:,}", _given_up(summary.forfeits)),
    ]


def status_line(game: GameStatus) -> str:
    """The same in one line."""
    summary, certificate = game.summary, game.summary.certificate
    return (
        f"threshold {summary.threshold:.4g}, expert calls {_share(summary.expert_call_rate)}, "
        f"tokens saved {game.savings.tokens_saved:,.0f}, average loss ≤ {certificate.average_upper:.2%} "
        f"with {certificate.confidence:.0%} confidence, ungraded {summary.owed}"
    )


def table_row(name: str, value: str, remark: str = "") -> str:
    """A line of the table.

    >>> table_row("dashboard", "http://127.0.0.1:8800/dashboard")
    '  dashboard      http://127.0.0.1:8800/dashboard'
    """
    return f"  {name:<15}{value:<11}{remark}".rstrip()


def _share(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.1%}"


def _saved(savings: SavingsReport) -> str:
    least, most, assumed = savings.tokens_saved_at_least, savings.tokens_saved_at_most, savings.longest_answer_assumed
    confidence = f"{savings.confidence:.0%}"
    if most is None:
        return f"at least {least:,.0f} with {confidence} confidence"
    condition = "" if assumed is None else f"; the upper bound assumes answers of at most {assumed:,.0f} tokens"
    return f"between {least:,.0f} and {most:,.0f} ({confidence} confidence each{condition})"


def _certificate(certificate: Certificate) -> tuple[str, str]:
    remark = f"average loss per request so far, {certificate.confidence:.0%} confidence"
    return f"≤ {certificate.average_upper:.2%}", remark


def _given_up(forfeits: Mapping[str, int]) -> str:
    given_up = f"; {sum(forfeits.values()):,} others were given up and count as loss 1" if forfeits else ""
    return f"expert calls whose draft is not graded yet{given_up}"
