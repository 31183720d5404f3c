"""Which attempts are repeated, how often and after which wait."""

import asyncio
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpac.errors import Unavailable
from bpac.models.retrying import Failed, RetryPolicy, requested_wait


@given(st.integers(1, 2000))
def test_pauses_double_and_are_bounded(tried: int) -> None:
    """Between half of the doubled wait and all of it, and never more than the longest."""
    wait = min(60.0, 0.5 * 2.0 ** min(tried - 1, 100))
    assert wait / 2 <= RetryPolicy().pause(tried) <= wait


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), (" 0.5 ", 0.5), ("-1", 0.0), ("nan", 0.0), ("soon", 0.0), ("", 0.0), (None, 0.0)],
)
def test_retry_after_is_a_number_of_seconds(header: str | None, seconds: float) -> None:
    """A header that cannot be read asks for no wait."""
    assert requested_wait(header) == seconds


def test_other_errors_are_not_repeated() -> None:
    """Only ``Failed`` is."""
    asked = count()

    async def attempt() -> None:
        next(asked)
        raise KeyError("mine")

    with pytest.raises(KeyError):
        asyncio.run(RetryPolicy().get(attempt, "m"))
    assert next(asked) == 1


def test_the_error_describes_the_last_failure() -> None:
    """With the server, the number of attempts, and the status."""

    async def attempt() -> None:
        raise Failed("busy", 503)

    with pytest.raises(Unavailable, match="m gave no answer in 3 attempts: busy") as caught:
        asyncio.run(RetryPolicy(retries=2, backoff=0.001).get(attempt, "m"))
    assert caught.value.status == 503
