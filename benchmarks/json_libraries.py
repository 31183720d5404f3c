"""Whether a second JSON library would pay: msgspec, which the gateway uses, beside orjson on the gateway's own work.

    python -m benchmarks.json_libraries

The ratios are taken within one run. docs/decisions/0007-one-json-library.md says what follows from them.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from benchmarks.scripted_upstream import completion, stream_events
from bpac.answer import Answer
from bpac.routing.decision import Decision
from bpac.routing.journal.entry_lines import entry_fields
from bpac.wire.completions import read_completion
from bpac.wire.rendering import visible
from bpac.wire.stream import read_events

REPEATS, CALLS = 200, 50

DECISION = Decision(12345, 0.123456789, 0.345678, 0.05, 0.05, False, True, ticket=12345, seen=23456)
NOTE = {"at": 1753456789.123456, "draft_tokens": 100, "prompt_tokens": 20}
SHORT = {"model": "m", "messages": [{"role": "user", "content": "x" * 200}]}
LONG = {"model": "m", "temperature": 0.7, "messages": [{"role": "user", "content": "How much is 6 * 7? " * 60}] * 20}

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class AllLogprobs:
    """A request of a caller who wants every log-probability."""

    logprobs = True
    top_logprobs = 20


def microseconds(call: Callable[[], object]) -> float:
    """The least processor time of a call."""
    call()
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        for _ in range(CALLS):
            call()
        times.append(time.process_time() - started)
    return 1e6 * min(times) / CALLS


def work() -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """What the gateway does with JSON: with msgspec, and with orjson."""
    entry = entry_fields(DECISION)
    short, long = json.dumps(SHORT).encode(), json.dumps(LONG).encode()
    whole, plain = completion(logprobs=True), completion(logprobs=False)
    chunks = [event.removeprefix(b"data: ").removesuffix(b"\n\n") for event in stream_events(logprobs=True)[:-1]]
    body: dict[str, Any] = orjson.loads(whole)
    return {
        "journal: write an entry": (lambda: encode(entry).decode(), lambda: orjson.dumps(entry).decode()),
        "journal: write a note": (lambda: encode(NOTE).decode(), lambda: orjson.dumps(NOTE).decode()),
        "request: read a short one": (lambda: decode(short), lambda: orjson.loads(short)),
        "request: write a short one": (lambda: encode(SHORT), lambda: orjson.dumps(SHORT)),
        "request: read 20 messages": (lambda: decode(long), lambda: orjson.loads(long)),
        "request: write 20 messages": (lambda: encode(LONG), lambda: orjson.dumps(LONG)),
        "answer: read": (lambda: read_completion(plain), lambda: Answer.from_openai(orjson.loads(plain))),
        "answer: read with 100 tokens": (
            lambda: read_completion(whole),
            lambda: Answer.from_openai(orjson.loads(whole)),
        ),
        "answer: write with 100 tokens": (
            lambda: encode(visible(body, AllLogprobs())),
            lambda: orjson.dumps(visible(body, AllLogprobs())),
        ),
        "stream: read 100 events": (lambda: read_events(chunks), lambda: [orjson.loads(chunk) for chunk in chunks]),
    }


# What a kept draft takes: its request is read and sent on, its answer is read, and its decision is written.
KEPT = (
    "request: read a short one",
    "request: write a short one",
    "answer: read with 100 tokens",
    "journal: write an entry",
    "journal: write a note",
)


def main() -> None:
    """Print both for each kind of work, and for a kept draft."""
    found = {name: tuple(map(microseconds, calls)) for name, calls in work().items()}
    found["all JSON of a kept draft"] = tuple(sum(found[name][at] for name in KEPT) for at in (0, 1))
    for name, (ours, other) in found.items():
        print(f"{name:32} msgspec {ours:7.2f} µs  orjson {other:7.2f} µs  ratio {ours / other:5.2f}")


if __name__ == "__main__":
    main()
