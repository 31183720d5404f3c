"""When the first token of an accepted draft reaches the caller of a stream, for scores that need more or less of it.

    python -m benchmarks.first_token

The model server is scripted: it generates a token every ten milliseconds. docs/operations.md has the figures.
"""

import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.processes import free_port, running
from bpac.testing import Reply, Request, ScriptedServer

# Tokens of an answer, and seconds between two of them.
TOKENS, PAUSE = 300, 0.01
REPEATS = 7

CONFIG = """
[gateway]
listen = "127.0.0.1:{port}"
store = "sqlite:///{directory}/bpac.db"
[models.m]
base_url = "{upstream}"
model = "m"
"""
ROUTE = """
[routes.{name}]
draft = "m"
expert = "m"
epsilon = 0.2
policy = "never"
score = {score}
"""
# Routes whose policy accepts every draft, by what their score needs.
SCORES = {
    "whole draft": '"mean_token_probability"',
    "first 64 tokens": '{ name = "mean_token_probability", first_tokens = 64 }',
    "first 16 tokens": '{ name = "mean_token_probability", first_tokens = 16 }',
    "first token": '{ name = "mean_token_probability", first_tokens = 1 }',
}


def generate(request: Request) -> Reply:
    """An answer whose tokens come one after the other; a whole answer comes when its last token would."""
    text = " ".join(f"word{number}" for number in range(TOKENS))
    return Reply(text, pause=PAUSE) if request.body.get("stream") else Reply(text, delay=PAUSE * TOKENS)


def first_and_last(url: str, model: str) -> tuple[float, float]:
    """Milliseconds until the first token of a stream has arrived, and until its end."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    body = json.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": "hello"}]})
    began, first = time.perf_counter(), 0.0
    connection.request("POST", f"{parts.path}/chat/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    while line := response.readline():
        if not first and b"word0" in line:
            first = time.perf_counter() - began
    connection.close()
    return 1000 * first, 1000 * (time.perf_counter() - began)


@contextmanager
def servers() -> Iterator[dict[str, tuple[str, str]]]:
    """The address and the model of each case, while the servers run."""
    names = {title: title.replace(" ", "-") for title in SCORES}
    with ScriptedServer(generate) as models, tempfile.TemporaryDirectory() as directory:
        port, file = free_port(), Path(directory) / "gateway.toml"
        routes = [ROUTE.format(name=names[title], score=score) for title, score in SCORES.items()]
        file.write_text(CONFIG.format(port=port, directory=directory, upstream=models.base_url) + "".join(routes))
        command = [sys.executable, "-m", "bpac", "serve", str(file), "--log-level", "warning"]
        with running("gateway", command, port):
            gateway = f"http://127.0.0.1:{port}/v1"
            yield {"no gateway": (models.base_url, "m")} | {title: (gateway, names[title]) for title in SCORES}


def main() -> None:
    """Print the times."""
    with servers() as cases:
        found: dict[str, list[tuple[float, float]]] = {title: [] for title in cases}
        for _ in range(REPEATS):
            for title, case in cases.items():  # in turns, so that what else the machine does falls on all of them
                found[title].append(first_and_last(*case))
    write = sys.stdout.write
    write(f"{TOKENS} tokens, one every {1000 * PAUSE:.0f} ms; medians of {REPEATS} streams in milliseconds\n\n")
    write("| the score needs | first token | last token |\n| --- | ---: | ---: |\n")
    for title, times in found.items():
        first, last = (statistics.median(values) for values in zip(*times, strict=True))
        write(f"| {title} | {first:,.0f} | {last:,.0f} |\n")


if __name__ == "__main__":
    main()
