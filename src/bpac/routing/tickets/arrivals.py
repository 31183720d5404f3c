"""The order of arrival, and which queries in it are done (MATH section 12).

1. Queries are independent in the order in which they arrive, not in the order in which their drafts end: hard
   questions take longer to draft, so what is still being drafted is likelier to lose.
2. A ticket is *done* when its query is decided or withdrawn. The *prefix* is the longest run of tickets from the first
   on that are all done. The bettor sees the rounds of the prefix, in order, and no others.
3. A decided round beyond the prefix is *held* until every earlier ticket is done.
4. A ticket may be *passed over*: the bettor is charged the worst that its round could cost at any threshold, the prefix
   moves on, and the charge is taken back when the ticket is done. Its wealth is then at most what it would be if
   the outcome were known, so passing over is always valid. It is done when the deadline of a draft passes, and where
   the rounds held up behind a ticket have won more than the charge takes.
5. When queries under way are cut off, for example by a crash, the earliest of them is passed over permanently: the cut
   is then a stopping time in the order of arrival, and leaves out no loss that was about to be seen.
6. Arrivals are not in the journal. Everything here follows from the entries of decided and withdrawn tickets, so the
   journal leads to the same prefix at every point.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from bpac.routing.decision import Decision

RoundT = TypeVar("RoundT")

PENDING, CHARGED, LOSS, FORFEIT, REFUSED = "pending", "charged", "loss", "forfeit", "refused"


class Held:
    """A decided round that the bettor does not know yet, and what came of it meanwhile.

    Parameters
    ----------
    decision: the round.
    outcome: ``pending`` (also where the draft was kept), ``charged``, ``loss``, ``forfeit`` or ``refused``.
    loss: the loss, where it is known.
    """

    __slots__ = ("decision", "loss", "outcome")

    def __init__(self, decision: Decision, outcome: str = PENDING, loss: float = 0.0) -> None:
        self.decision = decision
        self.outcome = outcome
        self.loss = loss

    def is_harmless(self) -> bool:
        """Whether the round is won at every threshold: its draft was kept, or its loss is known to be 0."""
        return not self.decision.call_expert or (self.outcome == LOSS and self.loss == 0.0)


class Arrivals:
    """The tickets of one epoch since the router started.

    Parameters
    ----------
    reached: every ticket up to this one is done or passed over.
    held: tickets beyond the prefix that are done, with their round; none for those withdrawn.
    passed: tickets that were passed over and are not done.
    overdue: tickets beyond the prefix that are passed over when it reaches them.
    """

    __slots__ = ("held", "overdue", "passed", "reached")

    def __init__(self) -> None:
        self.reached = 0
        self.held: dict[int, Held | None] = {}
        self.passed: set[int] = set()
        self.overdue: set[int] = set()

    def is_open(self, number: int) -> bool:
        """Whether a ticket of that number can still be done."""
        return number in self.passed or (number > self.reached and number not in self.held)

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        return {
            "reached": self.reached,
            "held": [
                [number, None if held is None else [held.decision.to_list(), held.outcome, held.loss]]
                for number, held in sorted(self.held.items())
            ],
            "passed": sorted(self.passed),
            "overdue": sorted(self.overdue),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.reached = state["reached"]
        self.held = {
            number: None if held is None else Held(Decision.from_list(held[0]), *held[1:])
            for number, held in state["held"]
        }
        self.passed, self.overdue = set(state["passed"]), set(state["overdue"])


def cut_off_rounds(
    done: Mapping[int, RoundT | None], tickets: range, harmless: Callable[[RoundT], bool]
) -> Iterator[RoundT | None]:
    """The rounds that still count after queries were cut off, in order of arrival; none marks the place of the charge.

    The earliest ticket that is not done is charged. Of the rounds beyond it only those that are not harmless count:
    what was under way is likelier to lose than what was decided, so the wins beyond it prove nothing.

    Parameters
    ----------
    done: rounds by ticket; none for a ticket that was withdrawn.
    tickets: the tickets to go through.
    harmless: whether a round is won at every threshold.

    >>> list(cut_off_rounds({1: "win", 3: "win", 4: None, 5: "loss"}, range(1, 6), lambda round_: round_ == "win"))
    ['win', None, 'loss']
    """
    beyond = False
    for number in tickets:
        if number not in done:
            if not beyond:
                yield None
            beyond = True
        elif (round_ := done[number]) is not None and not (beyond and harmless(round_)):
            yield round_
