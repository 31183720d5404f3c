"""Failed logins: addresses that try wrong keys are answered more and more slowly.

1. Each wrong key is counted for its address (an IPv4 address, or an IPv6 /64 network); the count falls with time.
2. Beyond a few, every answer to that address waits before it says whether the key was right, up to a second. Right
   and wrong keys wait alike: otherwise giving up on slow answers would tell wrong keys from right ones at full speed.
3. A right key is never refused. One that was accepted from the same address before does not even wait, so that callers
   who share an address with an attacker go on as if nothing had happened.
4. Both tables are bounded. An attacker with many addresses pushes the oldest ones out of the first, and only right
   keys get into the second.
"""

from collections import OrderedDict

# Wrong keys that cost nothing, how fast they are forgotten (per second), and how many are counted at most: with these,
# an address has its fresh start ten minutes after its last attempt.
FREE, FORGOTTEN, COUNTED = 10.0, 0.1, 60.0
# Seconds of waiting for each wrong key beyond the free ones, and at most.
STEP, LONGEST = 0.05, 1.0
MOST_ADDRESSES, MOST_ACCEPTED = 4096, 4096


class FailedLogins:
    """How long each address waits to hear whether a key is right.

    >>> logins = FailedLogins()
    >>> for _ in range(20):
    ...     logins.failed("192.0.2.1", now=0.0)
    >>> logins.pause("192.0.2.1", b"new key", now=0.0), logins.pause("192.0.2.2", b"new key", now=0.0)
    (0.5, 0.0)
    """

    def __init__(self) -> None:
        # For each address its count and when that was so, the longest silent first.
        self._failures: OrderedDict[str, tuple[float, float]] = OrderedDict()
        # Addresses and the digests of right keys that came from there, oldest first.
        self._accepted: dict[tuple[str, bytes], None] = {}

    def __len__(self) -> int:
        return len(self._failures) + len(self._accepted)

    def pause(self, address: str, digest: bytes, now: float) -> float:
        """Seconds to wait before an answer.

        Parameters
        ----------
        address: where the key comes from.
        digest: of the key.
        now: seconds of a clock that only grows.
        """
        if address not in self._failures or (address, digest) in self._accepted:
            return 0.0
        return min(LONGEST, max(0.0, self._level(address, now) - FREE) * STEP)

    def failed(self, address: str, now: float) -> None:
        """Count a wrong key."""
        self._failures[address] = (min(COUNTED, self._level(address, now) + 1.0), now)
        self._failures.move_to_end(address)
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def accepted(self, address: str, digest: bytes) -> None:
        """Remember that a right key came from there."""
        shown = (address, digest)
        if shown not in self._accepted:
            if len(self._accepted) >= MOST_ACCEPTED:
                del self._accepted[next(iter(self._accepted))]
            self._accepted[shown] = None

    def _level(self, address: str, now: float) -> float:
        level, then = self._failures.get(address, (0.0, now))
        return max(0.0, level - (now - then) * FORGOTTEN)
