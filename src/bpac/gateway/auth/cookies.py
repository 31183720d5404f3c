"""Passes to the dashboard: a browser shows its key once, and a cookie that is good for nothing else from then on."""

import hashlib
import hmac
from collections.abc import Sequence

COOKIE = "bpac_dashboard"
# Seconds that a pass is good for.
LIFETIME = 12 * 3600


class DashboardCookies:
    """Gives passes to operators, and knows them again.

    A pass says when it ends, sealed with the secret of the store and with the key it was given for: it says nothing of
    either, survives a restart, and ends with its key.

    Parameters
    ----------
    keys: of operators.
    secret: of the store.

    >>> passes = DashboardCookies(["key"], b"secret")
    >>> shown = passes.give("key", now=0.0)
    >>> passes.accepts(shown, now=1.0), passes.accepts(shown, now=1e6), passes.give("other", now=0.0)
    (True, False, None)
    """

    def __init__(self, keys: Sequence[str], secret: bytes) -> None:
        self._digests = [_digest(key) for key in keys]
        self._secret = secret

    def give(self, key: str, now: float) -> str | None:
        """A pass for a key; none if it is not one of ours.

        Parameters
        ----------
        key: what was shown.
        now: the time in seconds since 1970.
        """
        digest = _digest(key)
        if not sum(hmac.compare_digest(digest, known) for known in self._digests):
            return None
        end = int(now) + LIFETIME
        return f"{end}-{self._seal(end, digest)}"

    def accepts(self, shown: str, now: float) -> bool:
        """Whether this is a pass of ours that has not ended.

        Parameters
        ----------
        shown: the cookie.
        now: the time in seconds since 1970.
        """
        end, _, seal = shown.partition("-")
        if not (shown.isascii() and end.isdecimal() and len(end) < 15 and now < int(end)):
            return False
        return sum(hmac.compare_digest(self._seal(int(end), digest), seal) for digest in self._digests) > 0

    def _seal(self, end: int, digest: bytes) -> str:
        return hashlib.blake2b(b"dashboard-%d-" % end + digest, key=self._secret, digest_size=16).hexdigest()


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
