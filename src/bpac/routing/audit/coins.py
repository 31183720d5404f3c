"""Checks coins: once the key of a block is revealed, its coins are computed again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bpac.routing.coins import COMMITTED_BLOCK, KEY_BYTES, block_of_draws, key_digest
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Committed


@dataclass(slots=True)
class CoinCounts:
    """How many rounds have coins that were computed again, and why others do not.

    Parameters
    ----------
    verified: their key was committed to before them and is revealed, and every coin is as recorded.
    open: their block is not over, so that its key is still secret.
    withheld: their block is over, and its key is not revealed.
    uncommitted: their coins were not committed to, so nothing shows that they are random.
    """

    verified: int = 0
    open: int = 0
    withheld: int = 0
    uncommitted: int = 0


@dataclass(slots=True)
class _Block:
    """A block of rounds: its commitment, the number of its line, and the rounds whose coins are to be checked."""

    committed: Committed
    line: int
    rounds: list[tuple[int, Decision]] = field(default_factory=list)


class CoinChecks:
    """Follows the coins along a journal. Errors are returned as pairs of a line number and a message."""

    def __init__(self) -> None:
        self.counts = CoinCounts()
        self._block: _Block | None = None
        # The block before it, which is over, as long as its key is not revealed.
        self._over: _Block | None = None

    def committed(self, entry: Committed, line: int) -> Iterator[tuple[int, str]]:
        """Start a new block; the one before it is over."""
        yield from self._withheld()
        self._over, self._block = self._block, _Block(entry, line)

    def decided(self, decision: Decision, line: int) -> Iterator[tuple[int, str]]:
        """Add a decision to its block."""
        if self._block is None:
            self.counts.uncommitted += 1
        elif decision.step - self._block.committed.first_step >= COMMITTED_BLOCK:
            self.counts.uncommitted += 1
            yield line, f"the coin of step {decision.step} comes after the end of the block that was committed to"
        else:
            self._block.rounds.append((line, decision))

    def revealed(self, values: Mapping[str, Any], line: int) -> Iterator[tuple[int, str]]:
        """Check a revealed key, and compute every coin of its block again."""
        block = self._over
        if block is None or values.get("first_step") != block.committed.first_step:
            yield line, "this key does not belong to the block that has just ended"
            return
        text = values.get("key")
        try:
            key = bytes.fromhex(text) if isinstance(text, str) else b""
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES or key.hex() != text or key_digest(key) != block.committed.digest:
            yield line, f"this key is not the one that line {block.line} committed to"
            return
        self._over = None
        draws = block_of_draws(key)
        for at, decision in block.rounds:
            draw = draws[decision.step - block.committed.first_step]
            part = decision.cascade
            asked_all = part is None or part.full == (draw < part.full_propensity)
            if decision.call_expert == (draw < decision.propensity) and asked_all:
                self.counts.verified += 1
            else:
                yield (
                    at,
                    f"the coin of step {decision.step} contradicts its key: the expert call is recorded wrongly",
                )

    def end(self) -> Iterator[tuple[int, str]]:
        """Finish at the end of the journal."""
        yield from self._withheld()
        self._over = None
        if self._block is not None:
            self.counts.open = len(self._block.rounds)

    def _withheld(self) -> Iterator[tuple[int, str]]:
        block = self._over
        if block is not None and block.rounds:
            self.counts.withheld += len(block.rounds)
            steps = f"steps {block.rounds[0][1].step} to {block.rounds[-1][1].step}"
            yield block.line, f"the key to the coins of {steps} is not revealed, although the block is over"
