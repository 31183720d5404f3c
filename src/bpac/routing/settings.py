"""All settings of a router as one value, and its JSON form, from which any router can be built again."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from bpac.arguments import keep, of_kind, one_of, open_fraction, whole
from bpac.betting.bounds.mixtures import RATE_MIXTURES, CertificateKind
from bpac.betting.drift.alarm import AlarmSettings
from bpac.betting.ledgers.levels import EvenLevels, ListedLevels, RelativeLevels
from bpac.betting.payoff import Terms
from bpac.betting.wealth.bets import AdaptiveBet, FixedBet
from bpac.betting.wealth.thresholds import FixedSequence, PriorThreshold
from bpac.errors import SettingsError
from bpac.routing.cascade.policy import Cascade
from bpac.routing.exploration.gain_schedules import GainDriven, WhileItPays
from bpac.routing.exploration.schedules import Constant, Exploration, NoExploration, TwoStage
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Budget, Fixed, Hoeffding, Naive, Offline, Paper, Policy, Portfolio

# Below this, weights of audited losses exceed what the certificate can add up without losing digits.
LEAST_RATE = 1e-6
# With one claim over all epochs, this share of α belongs to the first.
FIRST_EPOCH = 0.9

KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Portfolio, Paper, Budget, Naive, Hoeffding, Offline, Fixed, Cascade),
        *(TwoStage, Constant, GainDriven, WhileItPays, NoExploration),
        *(AdaptiveBet, FixedBet, FixedSequence, PriorThreshold),
        *(RelativeLevels, EvenLevels, ListedLevels, AlarmSettings, LearnedScore),
    )
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a router promises and how it keeps it.

    Parameters
    ----------
    epsilon: bound on the average loss compared with always asking the expert (ε).
    alpha: chance that the promise fails at any time (α).
    policy: how the router bets.
    exploration: the probability with which the expert is called for accepted drafts.
    explore: ``serve`` gives the caller the expert's answer on an audit, ``shadow`` the draft.
    alpha_epochs: ``all`` epochs together have level α, or ``each`` epoch after a drift alarm has level α again.
    max_owed: audits whose outcome may be outstanding; beyond it the oldest is given up. As many that were
        given up are remembered, in case their outcome comes later, and as many rounds wait for an earlier ticket.
    certificate: how the actual loss is bounded, see ``ServedLoss`` (default: ``sharp`` with a portfolio and in a
        cascade, ``plain`` with the other policies, which are as the specification describes them).
    """

    # What a journal says that was written before this setting existed.
    unwritten: ClassVar[Mapping[str, Any]] = {"certificate": "plain"}

    epsilon: float
    alpha: float
    policy: Policy
    exploration: Exploration
    explore: Literal["serve", "shadow"] = "serve"
    alpha_epochs: Literal["all", "each"] = "all"
    max_owed: int = 4096
    certificate: CertificateKind | None = None

    def __post_init__(self) -> None:
        keep(self, epsilon=open_fraction(self.epsilon, "epsilon"), alpha=open_fraction(self.alpha, "alpha"))
        one_of(self.explore, "explore", ("serve", "shadow"))
        one_of(self.alpha_epochs, "alpha_epochs", ("all", "each"))
        whole(self.max_owed, "max_owed", 1)
        check_policy(self.policy)
        if self.certificate is None:
            keep(self, certificate="sharp" if isinstance(self.policy, Portfolio | Cascade) else "plain")
        one_of(self.certificate, "certificate", tuple(RATE_MIXTURES))
        of_kind(self.exploration, "exploration", [kind for kind in KINDS.values() if hasattr(kind, "floor")])
        fixed = isinstance(self.policy, Fixed | Offline)
        if not self.exploration.floor and not fixed:
            raise SettingsError(f"{type(self.policy).__name__} must explore: give it a schedule with a rate above 0")
        if 0.0 < self.exploration.floor < LEAST_RATE:
            raise SettingsError(
                f"exploration rates must be at least {LEAST_RATE}, got {self.exploration.floor}: "
                "an audit would count for more than a million queries"
            )

    @property
    def terms(self) -> Terms:
        """The terms of the bets."""
        return Terms(self.epsilon, self.exploration.floor, shadow=self.explore == "shadow")

    def alpha_of(self, epoch: int) -> float:
        """The level of an epoch; without an alarm there is only one (MATH section 3).

        Parameters
        ----------
        epoch: its number, from 1.
        """
        if self.alpha_epochs == "each" or self.policy.alarm is None:
            return self.alpha
        if epoch == 1:
            return FIRST_EPOCH * self.alpha
        return (1.0 - FIRST_EPOCH) * self.alpha * 6.0 / (math.pi * (epoch - 1)) ** 2

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return _written(self)

    @classmethod
    def from_json(cls, data: object) -> "Settings":
        """The settings that were written with ``to_json``."""
        settings: Settings = _build(cls, data, "settings")
        return settings

    def covers(self, kept: "Settings") -> bool:
        """Whether a router that was kept may go on where these settings are wanted.

        They may differ in settings that were introduced after it began, and in those that were left at a default which
        has changed since (``improved``): it has them as they were before, and promises the same.

        >>> from bpac.routing.policies import Portfolio
        >>> old = Settings(0.1, 0.1, Portfolio(floor_fractions=()), Portfolio().exploration, certificate="plain")
        >>> new = Settings(0.1, 0.1, Portfolio(), Portfolio().exploration)
        >>> new.covers(old), old.covers(new)
        (True, False)
        """
        written = kept.to_json()
        return _known_to(self, self.to_json(), written) == written

    def check_rebuilds(self) -> None:
        """Raise ``SettingsError`` unless the settings survive being written to a journal and read back."""
        try:
            again = Settings.from_json(json.loads(json.dumps(self.to_json(), allow_nan=False)))
        except (SettingsError, TypeError, ValueError) as error:
            raise SettingsError(f"these settings cannot be written to a journal and read back: {error}") from error
        if again != self:
            raise SettingsError(f"a journal would read these settings back differently: {self} becomes {again}")


def check_policy(policy: object) -> None:
    """Raise ``SettingsError`` unless this is a policy that journals know how to write."""
    of_kind(policy, "policy", [kind for kind in KINDS.values() if hasattr(kind, "commutes")])


def _encode(value: Any) -> Any:
    if type(value) in KINDS.values():
        return {"kind": type(value).__name__} | _written(value)
    if isinstance(value, tuple):
        return list(value)
    # As pairs: the order of the scores matters, and that of JSON keys does not.
    return [list(pair) for pair in value.items()] if isinstance(value, Mapping) else value


def _written(value: Any) -> dict[str, Any]:
    """The settings of a value, without those that have the value that journals before them imply."""
    unwritten = getattr(value, "unwritten", {})
    plain = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    return {
        name: _encode(setting) for name, setting in plain.items() if name not in unwritten or setting != unwritten[name]
    }


def _known_to(value: Any, new: dict[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Written settings without those that an older writing does not have."""
    unwritten = getattr(value, "unwritten", {})
    known = {name: setting for name, setting in new.items() if name in old or name not in unwritten}
    if callable(improved := getattr(value, "improved", None)):
        known |= {name: old[name] for name in improved() if name in old}
    for name, setting in known.items():
        inner, before = getattr(value, name, None), old.get(name)
        if isinstance(setting, dict) and isinstance(before, dict) and setting.get("kind") == before.get("kind"):
            known[name] = _known_to(inner, setting, before)
    return known


def _decode(value: object, path: str) -> Any:
    if isinstance(value, Mapping) and "kind" in value:
        kind = value["kind"]
        if not isinstance(kind, str) or kind not in KINDS:
            raise SettingsError(f"{path}: unknown kind {kind!r}; known: {', '.join(KINDS)}")
        return _build(KINDS[kind], {key: v for key, v in value.items() if key != "kind"}, path)
    return tuple(value) if isinstance(value, list) else value


def _build(kind: type[Any], data: object, path: str) -> Any:
    if not isinstance(data, Mapping):
        raise SettingsError(f"{path} must be an object, got {data!r}")
    known = {f.name for f in fields(kind) if f.init}
    for key in data:
        if key not in known:
            raise SettingsError(f"{path}: unknown key {key!r}; known: {', '.join(sorted(known))}")
    try:
        settings = {key: _decode(value, f"{path}.{key}") for key, value in data.items()}
        return kind(**(getattr(kind, "unwritten", {}) | settings))
    except TypeError as error:
        raise SettingsError(f"{path}: {error}") from error
