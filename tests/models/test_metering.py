"""Counting what a model server bills: its own counts where it gives them, estimates from above where it does not."""

import pytest

from bpac.answer import Answer
from bpac.models.metering import Attempt, TokenRates, prompt_size
from bpac.wire.stream import StreamEvent
from bpac.wire.usage import Meter, Usage

COUNTED = (
    b'{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, '
    b'"prompt_tokens_details": {"cached_tokens": 5}}}'
)


def words(*texts: str) -> list[StreamEvent]:
    """A stream of events, one for each text."""
    return [StreamEvent.read(b'{"choices": [{"delta": {"content": "%b"}}]}' % text.encode()) for text in texts]


def streamed(rates: TokenRates, events: list[StreamEvent], *, cut_off: bool, request: int = 30) -> Meter:
    """The meter after a streamed answer."""
    meter = Meter()
    try:
        with Attempt(meter, rates, request) as attempt:
            attempt.streaming()
            attempt.received(events)
            if cut_off:
                raise TimeoutError
    except TimeoutError:
        pass
    return meter


def test_the_servers_counts_are_taken() -> None:
    """Of whole answers and of streams, cached tokens included; nothing is marked as estimated."""
    meter, rates = Meter(), TokenRates()
    with Attempt(meter, rates, 30) as attempt:
        attempt.answered(Answer("it is 42", completion_tokens=3, prompt_tokens=7, cached_tokens=2))
    assert meter.take() == Usage(7, 2, 3)
    assert meter.take() == Usage()
    events = [*words("a", "b"), StreamEvent.read(COUNTED)]
    assert streamed(rates, events, cut_off=False).answered == Usage(9, 5, 4)
    # A server that counts as it goes has counted what was cut off.
    assert streamed(rates, events, cut_off=True).lost == Usage(9, 5, 4)


def test_what_is_not_counted_is_estimated_from_above() -> None:
    """At first every byte is a token; later the largest rates that were seen apply. Estimates are marked."""
    rates = TokenRates()
    assert streamed(rates, words("four", "é"), cut_off=True).lost == Usage(30, 0, 6, 36)
    streamed(rates, [*words("a", "b"), StreamEvent.read(COUNTED)], cut_off=False)
    assert streamed(rates, words("a", "b", "c"), cut_off=True).lost == Usage(9, 0, 6, 15)
    assert streamed(rates, words("a"), cut_off=True, request=31).lost == Usage(10, 0, 2, 12)
    with pytest.raises(TimeoutError), Attempt(meter := Meter(), rates, 30):
        raise TimeoutError
    assert meter.lost == Usage(9, 0, 4, 13)
    with Attempt(meter := Meter(), rates, 30) as attempt:
        attempt.answered(Answer("it is 42", completion_tokens=3))
    assert meter.answered == Usage(9, 0, 3, 12)


def test_refused_attempts_are_not_billed() -> None:
    """An error status costs nothing."""
    with Attempt(meter := Meter(), TokenRates(), 30) as attempt:
        attempt.refused()
    assert meter.take() == Usage()


def test_settings_are_not_part_of_a_prompt() -> None:
    """The size of a prompt is that of its messages and tools."""
    messages = [{"role": "user", "content": "6 * 7?"}]
    assert prompt_size({"messages": messages, "stream": True}) == prompt_size({"messages": messages})
    assert prompt_size({"messages": messages, "tools": [{"type": "function"}]}) > prompt_size({"messages": messages})
