"""Cookies of the dashboard: a browser sends an operator's key once, and from then on a signed cookie."""

import hashlib
import hmac
from collections.abc import Iterable

from bpac.errors import MissingExtra

try:
    from itsdangerous import TimestampSigner
except ImportError as error:
    raise MissingExtra("itsdangerous", "gateway") from error

COOKIE = "bpac_dashboard"
# Seconds for which a cookie is valid.
LIFETIME = 12 * 3600


class DashboardCookies:
    """Issues cookies to operators, and checks them.

    A cookie is the time at which it was issued, with a signature. The signing key is derived from the secret of the
    store and the operator's API key: a cookie reveals neither, survives a restart of the gateway, and becomes invalid
    when the API key is removed from the configuration.

    Parameters
    ----------
    keys: the API keys of operators.
    secret: the secret of the store.

    >>> cookies = DashboardCookies(["key"], b"secret")
    >>> cookies.accepts(cookies.issue("key")), cookies.accepts("forged"), cookies.issue("other")
    (True, False, None)
    """

    def __init__(self, keys: Iterable[str], secret: bytes) -> None:
        self._secret = secret
        self._signers = {
            salt: TimestampSigner(secret, salt, key_derivation="hmac", digest_method=hashlib.sha256)
            for salt in map(self._salt, keys)
        }

    def issue(self, key: str) -> str | None:
        """A cookie for a key; None if it is not the key of an operator."""
        signer = self._signers.get(self._salt(key))
        return None if signer is None else signer.sign("operator").decode()

    def accepts(self, cookie: str) -> bool:
        """Whether a cookie was issued for a key that is still valid, and has not expired."""
        # All signatures are compared: the time that takes says nothing about the key.
        return sum(signer.validate(cookie, LIFETIME) for signer in self._signers.values()) > 0

    def _salt(self, key: str) -> bytes:
        # Keyed: callers cannot choose what is looked up, so the time of a lookup says nothing about a key either.
        return hmac.digest(self._secret, b"dashboard cookie " + key.encode(), hashlib.sha256)
