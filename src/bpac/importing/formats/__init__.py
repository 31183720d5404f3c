"""The formats of logs: which one a record has, and the calls in it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bpac.importing.call import LoggedCall, Record
from bpac.importing.formats import langfuse, litellm, openai, opentelemetry, rows

Reader = Callable[[Record, str], Iterator[LoggedCall]]

# Readers of formats whose records are complete; those of OpenTelemetry are put together by a ``SpanReader``.
READERS: dict[str, Reader] = {
    "openai": openai.calls,
    "litellm": litellm.calls,
    "langfuse": langfuse.calls,
    "rows": rows.calls,
}
OPENTELEMETRY = "opentelemetry"
FORMATS = (*READERS, OPENTELEMETRY)
_MATCHES: dict[str, Callable[[Record], bool]] = {
    OPENTELEMETRY: opentelemetry.matches,
    "litellm": litellm.matches,
    "langfuse": langfuse.matches,
    "openai": openai.matches,
}


def detected(record: Record) -> str:
    """The format of a record; ``rows`` if it is none of the known ones.

    >>> detected({"request": {"messages": []}, "response": {"choices": []}}), detected({"conf": "0.9", "wrong": "0"})
    ('openai', 'rows')
    """
    return next((name for name, matches in _MATCHES.items() if matches(record)), "rows")


def unwrapped(record: Record) -> list[Record]:
    """The records in one: the API of LiteLLM and that of Langfuse return pages, ``{"data": […]}``."""
    page: Any = record.get("data")
    if isinstance(page, list) and page and "choices" not in record and all(isinstance(one, Mapping) for one in page):
        return page
    return [record]
