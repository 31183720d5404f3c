"""Failed logins: replies to an address that keeps sending wrong keys get slower.

1. Each wrong key is counted for its address (an IPv4 address, or an IPv6 /64 network); the count decreases with time.
2. After a few wrong keys, every reply to that address is delayed, by up to a second, before it says whether the key was
   right. Right and wrong keys are delayed alike: otherwise an attacker could give up on slow replies and try wrong keys
   at full speed.
3. A right key is never rejected. A key that was accepted from the same address before is not delayed either, so callers
   who share an address with an attacker notice nothing.
4. Both tables are bounded. An attacker with many addresses only removes the oldest entries of the first table, and only
   right keys get into the second.
"""

from collections import OrderedDict

# Wrong keys without a delay; decrease of the count per second; largest count. With these, an address starts again ten
# minutes after its last wrong key.
FREE, FORGOTTEN, COUNTED = 10.0, 0.1, 60.0
# Seconds of delay for each further wrong key, and at most.
STEP, LONGEST = 0.05, 1.0
MOST_ADDRESSES, MOST_ACCEPTED = 4096, 4096


class FailedLogins:
    """How long the reply to each address is delayed.

    >>> logins = FailedLogins()
    >>> for _ in range(20):
    ...     logins.failed("192.0.2.1", now=0.0)
    >>> logins.pause("192.0.2.1", b"new key", now=0.0), logins.pause("192.0.2.2", b"new key", now=0.0)
    (0.5, 0.0)
    """

    def __init__(self) -> None:
        # For each address its count and the time of that count, least recent failure first.
        self._failures: OrderedDict[str, tuple[float, float]] = OrderedDict()
        # Addresses with the digests of right keys that came from there, oldest first.
        self._accepted: dict[tuple[str, bytes], None] = {}

    def __len__(self) -> int:
        return len(self._failures) + len(self._accepted)

    def pause(self, address: str, digest: bytes, now: float) -> float:
        """Seconds to wait before the reply.

        Parameters
        ----------
        address: the address that the key comes from.
        digest: the digest of the key.
        now: the time of a monotonic clock, in seconds.
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
        """Remember that a right key came from an address."""
        pair = (address, digest)
        if pair not in self._accepted:
            if len(self._accepted) >= MOST_ACCEPTED:
                del self._accepted[next(iter(self._accepted))]
            self._accepted[pair] = None

    def _level(self, address: str, now: float) -> float:
        level, then = self._failures.get(address, (0.0, now))
        return max(0.0, level - (now - then) * FORGOTTEN)
