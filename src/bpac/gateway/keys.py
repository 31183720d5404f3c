"""API keys: what callers show, compared in constant time."""

import hashlib
import hmac
from collections.abc import Callable, Iterable

# The key that the headers of a request show, or ``BadRequest``.
KeyOf = Callable[[Iterable[tuple[bytes, bytes]]], str]


class Keys:
    """The keys of a gateway, as digests.

    Parameters
    ----------
    keys: the keys themselves; with none of them a gateway is open.

    >>> keys = Keys(["one", "two"])
    >>> keys.digest(b"two") in keys.digests, keys.digest(b"three")
    (True, None)
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self.digests = [hashlib.sha256(key.encode()).digest() for key in keys]

    def digest(self, key: bytes) -> bytes | None:
        """The digest of a key; none if it is not one of ours."""
        digest = hashlib.sha256(key).digest()
        # All of them, and each in constant time: how long it takes says nothing about any key.
        return digest if sum(hmac.compare_digest(digest, known) for known in self.digests) else None
