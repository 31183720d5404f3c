"""Tokens that a game has spent and saved, as far as a dashboard shows them."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TokenSavings:
    """Tokens that were generated, and how many fewer they are than always asking the expert would have generated.

    Parameters
    ----------
    draft_tokens, expert_tokens, judge_tokens: generated so far.
    always_tokens: what always asking the expert would have generated.
    tokens_saved: the difference.

    >>> TokenSavings(10.0, 400.0, 0.0, always_tokens=800.0, tokens_saved=390.0).spent_tokens
    410.0
    """

    draft_tokens: float
    expert_tokens: float
    judge_tokens: float
    always_tokens: float
    tokens_saved: float

    @property
    def spent_tokens(self) -> float:
        """All tokens generated so far."""
        return self.draft_tokens + self.expert_tokens + self.judge_tokens

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)
