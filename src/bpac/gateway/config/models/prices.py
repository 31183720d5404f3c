"""Prices of a model: per million tokens of the prompt, of its cached part, and of the answer."""

import math
from collections.abc import Mapping
from typing import Self

from bpac.errors import SettingsError
from bpac.wire.usage import Usage

_KEYS = ("input", "cached_input", "output")


class Price:
    """What a million tokens of a model cost: ``price = { input, cached_input, output }``, or a number for ``output``.

    Parameters
    ----------
    output: price of generated tokens.
    input: price of prompt tokens; None if it is not known.
    cached_input: price of prompt tokens that the server takes from its cache (default: ``input``).
    currency: the currency, for display (default: not named).

    >>> usage = Usage(prompt=1_000_000, cached=200_000, completion=100_000)
    >>> Price(output=10.0, input=2.0, cached_input=0.5).millionths(usage) / 1e6
    2.7
    """

    __slots__ = ("cached_input", "currency", "input", "output")

    def __init__(
        self,
        output: float,
        input: float | None = None,  # noqa: A002  # as in the configuration file
        cached_input: float | None = None,
        currency: str = "",
    ) -> None:
        self.output = output
        self.input = input
        self.cached_input = input if cached_input is None else cached_input
        self.currency = currency

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Price) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return "Price(output={!r}, input={!r}, cached_input={!r}, currency={!r})".format(*self._values())

    @classmethod
    def read(cls, value: object) -> Self:
        """The prices in a setting."""
        if not isinstance(value, Mapping):
            return cls(_amount(value, "a number >= 0.0, or a table with input and output"))
        for key in value:
            if key not in _KEYS:
                raise SettingsError(f"unknown key {key!r}; known keys: {', '.join(_KEYS)}")
        for key in ("input", "output"):
            if key not in value:
                raise SettingsError(f"{key} is missing: give the price of a million tokens, 0 if there is none")
        amounts = {key: _amount(value[key], f"{key} to be a number >= 0.0") for key in value}
        if amounts.get("cached_input", 0.0) > amounts["input"]:
            # Where a server does not count cached tokens, drafts are charged as if none were cached.
            raise SettingsError("cached_input must not be larger than input")
        return cls(amounts["output"], amounts["input"], amounts.get("cached_input"))

    def in_currency(self, currency: str) -> "Price":
        """The same price, in a currency that is named."""
        return Price(self.output, self.input, self.cached_input, currency)

    def millionths(self, usage: Usage) -> float:
        """The price of tokens times a million; without a price of prompts, that of the generated tokens alone."""
        prompts = 0.0
        if self.input is not None and self.cached_input is not None:
            prompts = self.input * (usage.prompt - usage.cached) + self.cached_input * usage.cached
        return prompts + self.output * usage.completion

    def _values(self) -> tuple[float, float | None, float | None, str]:
        return self.output, self.input, self.cached_input, self.currency


def _amount(value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise SettingsError(f"expected {expected}, got {value!r}")
    return float(value)
