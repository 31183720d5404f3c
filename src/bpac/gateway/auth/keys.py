"""API keys: which keys there are, what each may be used for, and which decisions its holder may see."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from bpac.errors import SettingsError
from bpac.gateway.config.secrets import ApiKey
from bpac.gateway.config.toml_tables import ConfigTable, Count
from bpac.gateway.http.bad_request import BadRequest

# Names are written to the journal and used as names of segments.
_NAME = re.compile(r"[^\W_][\w.@-]{0,63}")


class Role(StrEnum):
    """What a key may be used for."""

    CALL = "call"  # request completions
    FEEDBACK = "feedback"  # report losses of decisions that were made for the same name
    OPERATOR = "operator"  # see everything: status, metrics, dashboard, every decision


class KeySettings(ConfigTable, frozen=True):
    """A key with a name: a table ``[[gateway.keys]]``.

    Parameters
    ----------
    name: the tenant that the key belongs to. Keys of one name see the same decisions and share a segment.
    key: the key itself.
    roles: what the key may be used for.
    requests_per_day, tokens_per_day: how much the tenant may use with this key per day in UTC; None for no limit.
    requests_per_minute, tokens_per_minute: how much in any 60 seconds; None for no limit.
    """

    name: str
    key: ApiKey
    roles: frozenset[Role]
    requests_per_day: Count | None = None
    tokens_per_day: Count | None = None
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SettingsError(
                "name must be 1 to 64 letters, digits, dots, dashes, underscores or @, and begin with a letter or "
                f"digit, got {self.name!r}"
            )
        if not self.roles:
            raise SettingsError(f"roles is empty, so the key is of no use: list some of {', '.join(Role)}")


class KeyLimits(NamedTuple):
    """How much a tenant may use; None for no limit.

    Parameters
    ----------
    requests_per_day, tokens_per_day: the budget: how many per day in UTC.
    requests_per_minute, tokens_per_minute: the rate limit: how many in any 60 seconds.
    """

    requests_per_day: int | None = None
    tokens_per_day: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited, so that every answer has to report them."""
        return self.tokens_per_day is not None or self.tokens_per_minute is not None

    @property
    def has_rate(self) -> bool:
        """Whether anything is limited per minute."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None


class Identity(NamedTuple):
    """Who sends a request.

    Parameters
    ----------
    owner: recorded with each decision, so that only its owner and operators can see it: the name of the key, or a keyed
        hash of a key without a name; empty on an open gateway.
    segment: the name of the caller's segment, for routes with ``segment_by = "api_key"``.
    roles: what the caller may do.
    limits: how much the caller may use; none for no limit.
    """

    owner: str
    segment: str
    roles: frozenset[Role]
    limits: KeyLimits | None = None

    def require(self, role: Role) -> None:
        """Raise ``BadRequest`` unless the caller has a role."""
        if role not in self.roles:
            message = f"this needs an API key with the role {role}: the operator grants it in [[gateway.keys]]"
            raise BadRequest(message, 403, code="missing_role")

    def sees(self, owner: object) -> bool:
        """Whether the caller may see a decision with that owner."""
        return Role.OPERATOR in self.roles or (bool(self.owner) and owner == self.owner)

    def require_sight(self, owner: object) -> None:
        """Raise ``BadRequest`` unless the caller may see a decision with that owner."""
        if not self.sees(owner):
            raise BadRequest("this decision was made for another API key", 403, "decision", "not_yours")


# Every caller of a gateway without keys.
ANONYMOUS = Identity("", "", frozenset(Role))


class ApiKeys:
    """The keys of a gateway, kept as digests.

    Parameters
    ----------
    nameless: keys that may request completions and nothing else.
    named: keys with a name and roles; if a key is in both lists, the named one counts.
    secret: the secret of the store; the journal records keys without a name as a hash keyed with it.

    >>> keys = ApiKeys(["one"], [KeySettings("team", ApiKey("two"), frozenset({Role.OPERATOR}))], b"secret")
    >>> keys.identity(keys.digest(b"two")).owner, keys.identity(keys.digest(b"three"))
    ('team', None)
    """

    def __init__(self, nameless: Iterable[str], named: Iterable[KeySettings], secret: bytes) -> None:
        # Callers cannot choose the digests that are looked up, so the time of a lookup reveals nothing about a key.
        self._salt = secrets.token_bytes(32)
        self._known: dict[bytes, Identity] = {}
        for key in nameless:
            data = key.encode()
            owner = "#" + hashlib.blake2b(data, key=secret[:64], digest_size=8).hexdigest()
            # The name of its variable stays when the key is rotated. The hash is not keyed: segments of earlier
            # versions have this name.
            segment = getattr(key, "variable", "") or hashlib.sha256(data).hexdigest()[:12]
            self._known[self.digest(data)] = Identity(owner, segment, frozenset({Role.CALL}))
        for setting in named:
            limits = KeyLimits(
                setting.requests_per_day,
                setting.tokens_per_day,
                setting.requests_per_minute,
                setting.tokens_per_minute,
            )
            limited = limits if limits != KeyLimits() else None
            identity = Identity(setting.name, setting.name, setting.roles, limited)
            self._known[self.digest(setting.key.encode())] = identity

    @property
    def needed(self) -> bool:
        """Whether callers must send a key; a gateway without keys is open."""
        return bool(self._known)

    def digest(self, key: bytes) -> bytes:
        """The digest by which a key is known in this process."""
        return hashlib.blake2b(key, key=self._salt, digest_size=32).digest()

    def identity(self, digest: bytes) -> Identity | None:
        """The identity of the key with a digest; None if the gateway has no such key."""
        return self._known.get(digest)
