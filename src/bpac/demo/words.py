"""How a demo puts its numbers into words."""

from collections.abc import Mapping

from bpac.betting.bounds.certificate import Certificate
from bpac.gateway.games.savings import SavingsReport
from bpac.gateway.games.status import GameStatus


def standing(game: GameStatus) -> list[str]:
    """Where a game stands: threshold, expert calls, tokens, certificate and open rounds, one line each."""
    summary, savings = game.summary, game.savings
    return [
        row("threshold", f"{summary.threshold:.4g}", "drafts less uncertain than this are kept"),
        row("expert calls", _share(summary.expert_call_rate), f"{summary.expert_calls:,} of {summary.steps:,}"),
        row("tokens saved", f"{savings.tokens_saved:,.0f}", _saved(savings)),
        row("expert alone", f"{savings.always_tokens:,.0f}", "tokens it would have generated, estimated"),
        row("certificate", *_certificate(summary.certificate)),
        row("open rounds", f"{summary.owed:,}", _given_up(summary.forfeits)),
    ]


def in_short(game: GameStatus) -> str:
    """The same in one line."""
    summary, certificate = game.summary, game.summary.certificate
    return (
        f"threshold {summary.threshold:.4g}, expert calls {_share(summary.expert_call_rate)}, "
        f"tokens saved {game.savings.tokens_saved:,.0f}, served loss ≤ {certificate.average_upper:.2%} "
        f"with {certificate.confidence:.0%} confidence, open {summary.owed}"
    )


def row(name: str, value: str, remark: str = "") -> str:
    """A line of a table.

    >>> row("dashboard", "http://127.0.0.1:8800/dashboard")
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
    condition = "" if assumed is None else f"; the latter if no answer exceeds {assumed:,.0f} tokens"
    return f"{least:,.0f} to {most:,.0f} ({confidence} each{condition})"


def _certificate(certificate: Certificate) -> tuple[str, str]:
    remark = f"lost a round so far, with {certificate.confidence:.0%} confidence, whenever you look"
    return f"≤ {certificate.average_upper:.2%}", remark


def _given_up(forfeits: Mapping[str, int]) -> str:
    return f"and {sum(forfeits.values()):,} given up; each counts as loss 1" if forfeits else ""
