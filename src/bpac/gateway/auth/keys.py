"""API keys: which there are, what each may do, and whose decisions it sees."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from bpac.errors import SettingsError
from bpac.gateway.config.tables import Section
from bpac.gateway.http.bad_request import BadRequest
from bpac.models.fields import secret

# Names stand in the journal, in metrics and as segments.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class Role(StrEnum):
    """What a key may do."""

    CALL = "call"  # ask for completions
    FEEDBACK = "feedback"  # report losses of decisions made for the same name
    OPERATOR = "operator"  # see everything: status, metrics, dashboard, every decision


@dataclass(frozen=True, slots=True)
class KeySettings:
    """One key.

    Parameters
    ----------
    name: whose it is. ApiKeys of one name are one tenant: they see the same decisions, and share a segment.
    key: the key itself.
    roles: what it may do.
    """

    name: str
    key: str = field(repr=False)
    roles: frozenset[Role]

    @classmethod
    def read(cls, table: Section) -> "KeySettings":
        """The key in a table ``[[gateway.keys]]``."""
        name = table.filled("name")
        if not _NAME.fullmatch(name):
            raise SettingsError(
                f"{table.at('name')} must be 1 to 64 letters, digits, dots, dashes, underscores or @, got {name!r}"
            )
        place = table.at("key")
        key = secret(table.filled("key"), place)
        roles = table.take("roles", list)
        for role in roles:
            if role not in tuple(Role):
                raise SettingsError(f"{table.at('roles')} must be some of {', '.join(Role)}; got {role!r}")
        if not roles:
            raise SettingsError(f"{table.at('roles')} is empty: a key without a role opens nothing")
        table.end()
        return cls(name, key, frozenset(map(Role, roles)))


def read_keys(tables: Iterable[object], path: str) -> tuple[KeySettings, ...]:
    """The keys in a list of tables, each of them once."""
    keys: dict[str, KeySettings] = {}
    for number, table in enumerate(tables):
        found = KeySettings.read(Section(table, f"{path}[{number}]"))
        if found.key in keys:
            raise SettingsError(
                f"{path}[{number}].key is also that of {keys[found.key].name}: list each key once, with all its roles"
            )
        keys[found.key] = found
    return tuple(keys.values())


class Identity(NamedTuple):
    """Who asks.

    Parameters
    ----------
    owner: noted with each decision, so that it can be shown to whom it was made for: the name of the key, or a keyed
        hash of a key without a name; empty on an open gateway.
    segment: the name of the caller's segment, where keys divide the traffic.
    roles: what the caller may do.
    """

    owner: str
    segment: str
    roles: frozenset[Role]

    def require(self, role: Role) -> None:
        """Raise ``BadRequest`` unless the caller has a role."""
        if role not in self.roles:
            message = f"this needs an API key with the role {role}: the operator grants it in [[gateway.keys]]"
            raise BadRequest(message, 403, code="missing_role")

    def sees(self, owner: object) -> bool:
        """Whether the caller may see a decision that was made for an owner."""
        return Role.OPERATOR in self.roles or (bool(self.owner) and owner == self.owner)

    def require_sight(self, owner: object) -> None:
        """Raise ``BadRequest`` unless the caller may see a decision that was made for an owner."""
        if not self.sees(owner):
            raise BadRequest("this decision was made for another API key", 403, "decision", "not_yours")


# Everybody, on a gateway that has no keys.
ANYBODY = Identity("", "", frozenset(Role))


class ApiKeys:
    """The keys of a gateway, as digests.

    Parameters
    ----------
    nameless: keys that may call and nothing else.
    named: keys with a name and roles; they win where a key is in both.
    secret: of the store; keys without a name are noted in the journal as a hash that it seals.

    >>> keys = ApiKeys(["one"], [KeySettings("team", "two", frozenset({Role.OPERATOR}))], b"secret")
    >>> keys.identity(keys.digest(b"two")).owner, keys.identity(keys.digest(b"three"))
    ('team', None)
    """

    def __init__(self, nameless: Iterable[str], named: Iterable[KeySettings], secret: bytes) -> None:
        # A key of our own: what is looked up cannot be chosen by those who ask, so its time says nothing about a key.
        self._salt = secrets.token_bytes(32)
        self._known: dict[bytes, Identity] = {}
        for key in nameless:
            data = key.encode()
            owner = "#" + hashlib.blake2b(data, key=secret[:64], digest_size=8).hexdigest()
            # Not sealed: segments of earlier versions have this name.
            segment = hashlib.sha256(data).hexdigest()[:12]
            self._known[self.digest(data)] = Identity(owner, segment, frozenset({Role.CALL}))
        for setting in named:
            identity = Identity(setting.name, setting.name, setting.roles)
            self._known[self.digest(setting.key.encode())] = identity

    @property
    def needed(self) -> bool:
        """Whether there are keys at all; without any a gateway is open."""
        return bool(self._known)

    def digest(self, key: bytes) -> bytes:
        """What stands for a key in memory, as long as this process lasts."""
        return hashlib.blake2b(key, key=self._salt, digest_size=32).digest()

    def identity(self, digest: bytes) -> Identity | None:
        """Who has the key with a digest; none if it is not one of ours."""
        return self._known.get(digest)
