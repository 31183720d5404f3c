"""The settings of scores that are learned on the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, cast

from bpac.arguments import closed_fraction, keep, of_kind, positive, some, text, whole
from bpac.errors import InputError, SettingsError

# Names and words are written to the journal with every decision.
LONGEST_NAME = 64
LEAST_AUDITS = 10
# Share of α of all learned scores together. The more it is, the later the score that is there first certifies anything.
# What is not used goes back to it, so that half of α costs little where nothing can be learned.
FOR_LEARNED_SCORES = 0.5
# ``fit_at`` of games that learn together: one score, which then has all of that share. Each game may be too short for
# the divided shares of several scores, and all of them together soon have enough audits for one good fit.
FIT_TOGETHER = (600,)


@dataclass(frozen=True, slots=True)
class LearnedScore:
    """When scores are learned, from what, and their shares of α (MATH section 14).

    Parameters
    ----------
    features: names of what is known of every draft beside its score.
    fit_at: how many audits must have an outcome for each fit, at least 10.
    shares: share of α of each fit (default: equal parts of a half). The score that was there first has the rest, and
        gets back those that are not used.
    least_losses: the losses, and the rest of the audits, must each sum to at least this before there is a fit.
    ridge: strength of the penalty on the weights of the model.
    least_gain: how much more traffic a score must accept than the one that was there first to be worth its share of α,
        by an estimate (0: it always joins). If it does not, its share goes back.
    tries_all: whether later fits are tried after one that was not worth its share; otherwise no more scores are
        learned, and their shares go back, too.
    retires: whether a score that has nothing left to gain stops betting.

    >>> LearnedScore(features=("draft_tokens",), fit_at=(200, 600), shares=(0.1, 0.1)).own_share
    0.8
    """

    # What a journal says that was written before these settings existed.
    unwritten: ClassVar[Mapping[str, Any]] = {"tries_all": False, "retires": False}

    features: tuple[str, ...] = ()
    fit_at: tuple[int, ...] = (200, 600, 1800)
    shares: tuple[float, ...] | None = None
    least_losses: float = 20.0
    ridge: float = 10.0
    least_gain: float = 0.1
    tries_all: bool = True
    retires: bool = True

    def __post_init__(self) -> None:
        keep(
            self,
            features=_names(self.features),
            fit_at=some(
                self.fit_at, "fit_at", "number of audits", lambda value, _: whole(value, "each of fit_at", LEAST_AUDITS)
            ),
            least_losses=positive(self.least_losses, "least_losses"),
            ridge=positive(self.ridge, "ridge"),
            least_gain=closed_fraction(self.least_gain, "least_gain"),
        )
        of_kind(self.tries_all, "tries_all", (bool,))
        of_kind(self.retires, "retires", (bool,))
        fits = len(self.fit_at)
        shares = (FOR_LEARNED_SCORES / fits,) * fits if self.shares is None else self.shares
        keep(self, shares=some(shares, "shares", "share of α", positive))
        if fits != len(self.share_of_each):
            raise SettingsError(
                f"each fit needs a share of α: fit_at has {fits} values and shares has {len(self.share_of_each)}"
            )
        if any(later <= earlier for earlier, later in pairwise(self.fit_at)):
            raise SettingsError(f"fit_at must increase, got {self.fit_at}")
        if sum(self.share_of_each) >= 1.0:
            raise SettingsError(
                f"the shares of learned scores must sum to less than 1, got {sum(self.share_of_each)}: "
                "the score that is there first needs a share, too"
            )

    def improved(self) -> tuple[str, ...]:
        """Settings that were left at their defaults, which were others in earlier versions."""
        changed = ("fit_at", "shares", "ridge")
        default = LearnedScore(self.features)
        return changed if all(getattr(self, name) == getattr(default, name) for name in changed) else ()

    @property
    def share_of_each(self) -> tuple[float, ...]:
        """Share of α of each fit."""
        return cast(tuple[float, ...], self.shares)  # set in __post_init__

    @property
    def own_share(self) -> float:
        """Share of α of the score that is there first."""
        return 1.0 - sum(self.share_of_each)

    def share(self, score: int) -> float:
        """Share of α of a score: 0 is the one that is there first, 1 the first that is learned."""
        return self.share_of_each[score - 1] if score else self.own_share

    def returned(self, score: int) -> float:
        """What goes back to the score that is there first if this one is not worth its share.

        It is relative to the share of the first.
        """
        last = score if self.tries_all else len(self.share_of_each)
        return sum(self.share_of_each[score - 1 : last]) / self.own_share


def _names(names: object) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, list | tuple) or not names:
        raise SettingsError(f"features must be a list of one or more names, got {names!r}")
    try:
        checked = tuple(text(name, "each feature's name") for name in names)
    except InputError as error:
        raise SettingsError(str(error)) from error
    if len(set(checked)) < len(checked) or not all(0 < len(name) <= LONGEST_NAME for name in checked):
        raise SettingsError(f"features must be different names of 1 to {LONGEST_NAME} characters, got {names!r}")
    return checked
