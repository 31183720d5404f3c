"""Ids of tickets that callers hold (``tic-GAME-NONCE-SEAL``): nobody can guess them, and only their owner can use them.

With several gateways on one game in Redis an id ends with ``.TERMS``, what another gateway needs to decide the ticket.
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

_ID = re.compile(r"tic-([1-9][0-9]{0,17})-([0-9a-f]{32})-([0-9a-f]{32})(?:\.([0-9A-Za-z_=-]{1,400}))?")


class TicketId(NamedTuple):
    """The parts of an id.

    Parameters
    ----------
    game: the number of the game in its store.
    nonce: what tells it from all other tickets.
    terms: what another gateway needs to decide it; empty if only the process that gave it out can.
    """

    game: int
    nonce: str
    terms: str = ""

    def text(self, secret: bytes, owner: str) -> str:
        """The id as its owner sees it.

        Parameters
        ----------
        secret: of the store.
        owner: the caller that holds the ticket.
        """
        return f"tic-{self.game}-{self.nonce}-{self._seal(secret, owner)}" + (f".{self.terms}" if self.terms else "")

    @classmethod
    def read(cls, text: str, secret: bytes, owner: str) -> "TicketId | None":
        """The parts of an id; none if this store never gave it to this owner."""
        found = _ID.fullmatch(text)
        if found is None:
            return None
        ticket = cls(int(found[1]), found[2], found[4] or "")
        return ticket if hmac.compare_digest(ticket._seal(secret, owner), found[3]) else None

    def _seal(self, secret: bytes, owner: str) -> str:
        parts = f"{self.game}\0{self.nonce}\0{self.terms}\0{owner}"
        return hashlib.blake2b(parts.encode("utf-8", "replace"), key=secret[:64], digest_size=16).hexdigest()


def new_nonce() -> str:
    """A nonce that nobody can guess."""
    return secrets.token_hex(16)


def nonce_of_key(secret: bytes, owner: str, route: str, key: str) -> str:
    """The nonce of all requests of a caller with one idempotency key, on one route."""
    parts = f"{owner}\0{route}\0{key}".encode("utf-8", "replace")
    return hashlib.blake2b(parts, key=secret[:64], digest_size=16, person=b"idempotency").hexdigest()
