"""What routing saved: tokens, and money where prices are known, net of drafts, audits and judges."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# Of a standard normal variable, two-sided 95 %.
_WIDTH = 1.959964


@dataclass(slots=True)
class Savings:
    """Running sums over the notes of a journal.

    What the expert would have written where it was not asked is never seen. It is estimated from the rounds in which
    it was asked, each weighted by one over the probability of asking; the interval is that of such an estimate.

    Parameters
    ----------
    draft_tokens, expert_tokens, judge_tokens: generated, and so paid for.
    always_tokens: estimate of what always asking the expert would have generated.
    variance: of that estimate.

    >>> savings = Savings()
    >>> savings.add({"draft_tokens": 10})
    >>> savings.add({"expert_tokens": 400, "propensity": 0.5})
    >>> savings.report()["tokens_saved"]
    390.0
    """

    draft_tokens: int = 0
    expert_tokens: int = 0
    judge_tokens: int = 0
    always_tokens: float = 0.0
    variance: float = 0.0

    def add(self, note: Mapping[str, Any]) -> None:
        """Take in the note of an entry."""
        self.draft_tokens += note.get("draft_tokens", 0)
        self.judge_tokens += note.get("judge_tokens", 0)
        generated = note.get("expert_tokens", 0)
        if generated:
            propensity = note["propensity"]
            self.expert_tokens += generated
            self.always_tokens += generated / propensity
            self.variance += generated**2 * (1.0 - propensity) / propensity**2

    def report(self, draft: float | None = None, expert: float | None = None, judge: float = 0.0) -> dict[str, Any]:
        """What was saved, as JSON values.

        Parameters
        ----------
        draft, expert, judge: prices of a million generated tokens.
        """
        spread = _WIDTH * math.sqrt(self.variance)
        saved = self.always_tokens - self.draft_tokens - self.expert_tokens - self.judge_tokens
        report = asdict(self) | {"tokens_saved": saved, "tokens_saved_95": [saved - spread, saved + spread]}
        del report["variance"]
        if draft is not None and expert is not None:
            spent = draft * self.draft_tokens + expert * self.expert_tokens + judge * self.judge_tokens
            money = (expert * self.always_tokens - spent) / 1e6
            report |= {
                "money_saved": money,
                "money_saved_95": [money - expert * spread / 1e6, money + expert * spread / 1e6],
            }
        return report
