"""What the gamblers of a portfolio stake (MATH sections 3 and 16). Any stakes keep the promise."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bpac.arguments import open_fraction, positive, some
from bpac.betting.bounds.fixed_sample import FRACTIONS
from bpac.errors import SettingsError


class Stakes(NamedTuple):
    """What the gamblers stake (θ), and with how much money they begin.

    Parameters
    ----------
    fractions: in rounds that are explored more than at least.
    floor_fractions: in rounds whose least propensity is the exploration floor; empty for the same.
    weights: shares of the money, for ascending stakes; empty for equal shares.
    """

    fractions: tuple[float, ...]
    floor_fractions: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()


# The specification's (MATH section 3), which fixed memories use.
PLAIN_STAKES = Stakes(FRACTIONS)
# Chosen on the built-in tables with losses of 0 or 1, at their length, at five times and at 25 times it. Two gamblers
# have most of the money. The first one is for thresholds close to ε, which only long streams certify: its wealth grows
# up to a risk of 0.9 ε. In rounds at the exploration floor audits are rare, so that only thresholds well below ε can be
# certified in time, and the best stake at a risk R is the fraction 1 − R/ε of the payoff bound: there, larger stakes
# win more (section 16).
DEFAULT_STAKES = Stakes((0.1, 0.3, 0.6), (0.2, 0.6, 0.9), (0.1, 0.45, 0.45))
# Chosen on the built-in table with graded losses. The best stake is inversely proportional to E[l²]/E[l], which is 1
# for losses of 0 or 1 and about a third there; a loss of 1 must still leave some money.
GRADED_STAKES = Stakes((0.3, 0.95), (0.9, 0.95), (0.1, 0.9))


def default_stakes(memory: str | None) -> Stakes:
    """The stakes of a policy with that memory."""
    return DEFAULT_STAKES if memory == "alarmed" else PLAIN_STAKES


def check_stakes(stakes: Stakes) -> None:
    """Raise ``SettingsError`` unless there are as many of each, and weights stand beside ascending stakes."""
    fractions, floor_fractions, weights = stakes
    if floor_fractions and len(floor_fractions) != len(fractions):
        raise SettingsError(f"floor_fractions must be as many as fractions, {len(fractions)}; got {floor_fractions!r}")
    if not weights:
        return
    if len(weights) != len(fractions) or abs(sum(weights) - 1.0) > 1e-9:
        raise SettingsError(f"weights must be as many as fractions, {len(fractions)}, and sum to 1; got {weights!r}")
    for name, values in (("fractions", fractions), ("floor_fractions", floor_fractions)):
        if any(later < earlier for earlier, later in pairwise(values)):
            raise SettingsError(f"with weights, {name} must be ascending, got {values!r}")


def chosen_stakes(given: Sequence[tuple[float, ...] | None], memory: str | None) -> Stakes:
    """The stakes of a policy; ``SettingsError`` if they do not fit together.

    Parameters
    ----------
    given: ``fractions``, ``floor_fractions`` and ``weights`` as they were asked for. Where all are none, they are the
        default ones; otherwise, those that are none are as in the specification.
    memory: of the policy.
    """
    defaults = PLAIN_STAKES if any(part is not None for part in given) else default_stakes(memory)
    parts = (default if part is None else part for part, default in zip(given, defaults, strict=True))
    fractions, floor_fractions, weights = parts
    stakes = Stakes(
        some(fractions, "fractions", "fraction", open_fraction),
        some(floor_fractions, "floor_fractions", "fraction", open_fraction) if floor_fractions else (),
        some(weights, "weights", "share", positive) if weights else (),
    )
    check_stakes(stakes)
    return stakes
