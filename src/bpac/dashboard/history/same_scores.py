"""Scores that do not vary: a score that is the same for every draft cannot tell good drafts from bad ones."""

from dataclasses import dataclass

# After this many equal scores in a row, something other than the drafts determines the score.
MANY_SAME = 50


@dataclass(slots=True)
class SameScores:
    """How many of the latest drafts had exactly the same uncertainty.

    Parameters
    ----------
    value: the uncertainty of the latest draft; -1 before the first.
    count: the number of latest drafts that had it.
    since: when the first of them was scored, in seconds since 1970; 0 if unknown.

    >>> scores = SameScores()
    >>> for uncertainty in (0.3, 1.0, 1.0):
    ...     scores.follow(uncertainty, at=0.0)
    >>> scores.count, scores.constant
    (2, False)
    """

    value: float = -1.0
    count: int = 0
    since: float = 0.0

    def follow(self, uncertainty: float, at: float) -> None:
        """Add the uncertainty of a draft, and when it was scored."""
        if uncertainty == self.value:
            self.count += 1
        else:
            self.value, self.count, self.since = uncertainty, 1, at

    @property
    def constant(self) -> bool:
        """Whether so many scores in a row were equal that the drafts can hardly be the reason."""
        return self.count >= MANY_SAME
