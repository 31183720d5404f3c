import math
from fractions import Fraction

import numpy as np
import pytest

from bpac.arguments import fraction, one_of, open_fraction, positive, whole
from bpac.errors import BpacError, InputError, MissingExtra, SettingsError

HUGE = pytest.param(10**400, id="too large for a float")


@pytest.mark.parametrize("value", [0, 1, 0.0, 0.25, 1.0, np.float32(0.5), np.int64(1), Fraction(1, 3)])
def test_fraction_accepts_every_type_of_real_number(value: float) -> None:
    """Any real number in [0, 1] becomes the float of the same size."""
    number = fraction(value, "loss")
    assert type(number) is float
    assert number == float(value)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, -1e-9, 1.0000001, 2, "0.5", True, False, None, [0.5], 1j, np.bool_(True), HUGE],
)
def test_fraction_refuses_everything_else(value: object) -> None:
    """What is not a number in [0, 1] is refused with its name and its value, verdicts (bool) included."""
    with pytest.raises(InputError, match=r"^loss must be a number in \[0, 1\], got ") as caught:
        fraction(value, "loss")
    assert f"{value!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("loss", r"call forfeit\(\)"), ("uncertainty", r"without decide\(\)"), ("perplexity", "rescale it")],
)
def test_fraction_names_the_remedy(name: str, remedy: str) -> None:
    """The message says what to do about the value."""
    with pytest.raises(InputError, match=f"^{name} .*; .*{remedy}$"):
        fraction(7, name)


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, math.nan, math.inf, "0.1", None, True, HUGE])
def test_open_fraction_refuses_the_ends(value: object) -> None:
    """Settings such as ε and α lie strictly between 0 and 1."""
    with pytest.raises(SettingsError, match=r"^alpha must "):
        open_fraction(value, "alpha")


@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "1", None, False])
def test_positive_refuses_what_is_not_finite_and_above_0(value: object) -> None:
    """A stake is a finite number above 0."""
    with pytest.raises(SettingsError, match=r"^stake must "):
        positive(value, "stake")


@pytest.mark.parametrize(
    ("value", "says"),
    [(1.0, "whole number"), (True, "whole number"), ("3", "whole number"), (2, "at least 3"), (10, "at most 9")],
)
def test_whole_refuses_fractions_and_numbers_out_of_range(value: object, says: str) -> None:
    """A count is an int within its limits, and the message names the limit that it misses."""
    with pytest.raises(SettingsError, match=f"^size must .*{says}"):
        whole(value, "size", 3, 9)


def test_whole_without_a_limit_has_no_upper_limit() -> None:
    """Only the lower limit is checked, and the message names no upper one."""
    assert whole(10**9, "size", 3) == 10**9
    with pytest.raises(SettingsError, match=r"at least 3, got 2$"):
        whole(2, "size", 3)


def test_one_of_lists_the_choices() -> None:
    """An unknown word is refused with the known ones."""
    with pytest.raises(SettingsError, match="memory must be one of latched, revocable; got 'forgetful'"):
        one_of("forgetful", "memory", ("latched", "revocable"))


def test_the_message_of_a_missing_extra_is_a_command() -> None:
    """An absent optional dependency names the extra to install, and is an ImportError too."""
    error = MissingExtra("matplotlib", "figures")
    assert "pip install 'bpac[figures]'" in str(error)
    assert isinstance(error, BpacError)
    assert isinstance(error, ImportError)
