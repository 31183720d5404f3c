"""Scores that cannot be right: the same for every draft, or computed from log-probabilities that are none.

Some servers send 0 or -9999 as the log-probability of every token. A single draft proves nothing: a certain token
really has a log-probability of 0, and a caller may repeat a question. So only drafts with different texts are counted.
"""

import logging

from bpac.answer import Answer, excerpt
from bpac.gateway.games.shown.troubles import GameTrouble
from bpac.gateway.telemetry.log_rate import LogRate

log = logging.getLogger("bpac.gateway")

# Different drafts in a row after which a score counts as wrong.
MANY = 20
# What servers send instead of a log-probability that they do not know.
SENTINEL = -9999.0
# Characters of the tool calls that distinguish drafts.
LONGEST = 1000

COST = "a wrong score cannot tell good drafts from bad ones, so the threshold lets all drafts pass or none"


class ScoreWatch:
    """Watches the scores of one game.

    Parameters
    ----------
    route: the name of its route, for the log.

    >>> watch = ScoreWatch("homework")
    >>> for number in range(MANY):
    ...     watch.add(0.25, Answer(f"answer {number}"))
    >>> watch.trouble.what
    'the latest 20 drafts with different texts all have the uncertainty 0.25'
    """

    __slots__ = ("_constant", "_impossible", "_rate", "_route", "_value")

    def __init__(self, route: str) -> None:
        self._route = route
        self._rate = LogRate()
        self._value = -1.0
        # Hashes of the different drafts in a row with the same score, and of those with impossible log-probabilities.
        self._constant: set[int] = set()
        self._impossible: set[int] = set()

    def add(self, uncertainty: float, draft: Answer) -> None:
        """Add a draft and its score."""
        self.seen(uncertainty, hash(text_of(draft)), impossible=is_impossible(draft))

    def seen(self, uncertainty: float, text: int, *, impossible: bool) -> None:
        """Add a draft and its score.

        Parameters
        ----------
        uncertainty: the score.
        text: a number that differs between drafts with different texts.
        impossible: whether its log-probabilities are none.
        """
        if uncertainty != self._value:
            self._value = uncertainty
            self._constant.clear()
        if not impossible:
            self._impossible.clear()
        for drafts in (self._constant, self._impossible) if impossible else (self._constant,):
            if len(drafts) < MANY:
                drafts.add(text)
        if (trouble := self.trouble) is not None and (times := self._rate.count(trouble.remedy)):
            known = {"route": self._route, "error": trouble.what, "remedy": trouble.remedy, "since_last_line": times}
            log.warning("scores are wrong", extra=known)

    @property
    def trouble(self) -> GameTrouble | None:
        """What is wrong with the latest scores; none if nothing is known to be."""
        if len(self._impossible) >= MANY:
            return GameTrouble(
                f"the latest {MANY} drafts with different texts have no log-probabilities but 0 and -9999",
                COST,
                "the draft model's server does not compute log-probabilities: use another server, or configure another "
                'score (score = "verbalized" needs none)',
            )
        if len(self._constant) >= MANY:
            return GameTrouble(
                f"the latest {MANY} drafts with different texts all have the uncertainty {self._value:.6g}",
                COST,
                "check what the draft model's server returns, or configure another score",
            )
        return None


def text_of(draft: Answer) -> str:
    """What drafts are told apart by."""
    return f"{draft.text}\0{excerpt(draft.tool_calls, LONGEST)}" if draft.tool_calls else draft.text


def is_impossible(draft: Answer) -> bool:
    """Whether the log-probability of every token is 0 or the value that servers send instead of one."""
    tokens = draft.tokens
    return bool(tokens) and all(token.logprob == 0.0 or token.logprob <= SENTINEL for token in tokens or ())
