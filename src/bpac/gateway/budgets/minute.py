"""What a tenant has used in the last minute, for limits per minute: counted by second, so that any minute is meant."""

# Seconds that a limit looks back on.
MINUTE = 60


class LastMinute:
    """Requests and tokens of the last minute.

    The second in which a minute begins counts as a whole, so that no 60 seconds hold more than a limit allows.

    >>> minute = LastMinute()
    >>> minute.add(100, requests=2, tokens=50)
    >>> minute.used(160.9), minute.used(161)
    ((2, 50), (0, 0))
    """

    def __init__(self) -> None:
        # By second, the earliest first: requests and tokens. A clock that never goes back keeps them in order.
        self._seconds: dict[int, list[int]] = {}
        self._requests = 0
        self._tokens = 0

    def add(self, second: int, requests: int, tokens: int) -> None:
        """Count something at a second that is not earlier than those before."""
        counts = self._seconds.setdefault(second, [0, 0])
        counts[0] += requests
        counts[1] += tokens
        self._requests += requests
        self._tokens += tokens

    def take_back(self, second: int, requests: int, tokens: int) -> None:
        """Count less at a second, unless it is over a minute ago."""
        if second in self._seconds:
            self.add(second, -requests, -tokens)

    def used(self, now: float) -> tuple[int, int]:
        """Requests and tokens of the last minute.

        Parameters
        ----------
        now: the time in seconds.
        """
        while self._seconds and (second := next(iter(self._seconds))) < int(now) - MINUTE:
            requests, tokens = self._seconds.pop(second)
            self._requests -= requests
            self._tokens -= tokens
        return self._requests, self._tokens

    def wait(self, now: float, most: int, *, tokens: bool) -> int:
        """Seconds until less than a limit counts; 0 if it is not reached.

        Parameters
        ----------
        now: the time in seconds.
        most: the limit.
        tokens: whether tokens are limited, and not requests.
        """
        left = self.used(now)[tokens]
        for second, counts in self._seconds.items():
            if left < most:
                return 0
            left -= counts[tokens]
            if left < most:
                return second + MINUTE + 1 - int(now)
        return 0
