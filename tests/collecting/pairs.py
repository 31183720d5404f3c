"""Test data: a file of sums, a scripted server for both models, and the command line of ``bpac collect``."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bpac.benchmarks.registry import named_benchmark
from bpac.collecting.answers_file import RecordedAnswer, RecordedQuestion, Role, read_answers
from bpac.collecting.collect import CollectionRun, CollectionSummary
from bpac.collecting.requests import ModelServer, RequestTemplate
from bpac.testing import Reply, Request, ScriptedServer

GSM8K = named_benchmark("gsm8k")
BODY = {"logprobs": True, "top_logprobs": 2}


def sums(folder: Path, count: int) -> Path:
    """A file of questions: what is n + n, for n from 0."""
    path = folder / "sums.jsonl"
    rows = [{"question": f"What is {n} + {n}?", "answer": f"It is #### {2 * n}"} for n in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def number(request: Request) -> int:
    """The n of a question."""
    words = next(m["content"] for m in request.body["messages"] if m["role"] == "user")
    return int(words.split()[2])


def role(request: Request) -> Role:
    """The model that a request asks."""
    return "draft" if request.body["model"] == "draft" else "expert"


def adds(request: Request) -> Reply:
    """The expert is always correct; the draft is correct for even numbers and less certain about odd ones."""
    n = number(request)
    if role(request) == "expert":
        return Reply(f"So \\boxed{{{2 * n}}}", reasoning="two times that")
    return Reply(f"So \\boxed{{{2 * n + n % 2}}}", probability=0.9 - 0.3 * (n % 2) - n / 1000)


def request_counts(server: ScriptedServer) -> Counter[tuple[int, Role]]:
    """How often each question was asked of each model."""
    return Counter((number(request), role(request)) for request in server.requests)


def collection(folder: Path, count: int, **settings: Any) -> CollectionRun:
    """A run that asks a draft and an expert the questions of a file."""
    templates: dict[Role, RequestTemplate] = {
        "draft": RequestTemplate("draft", BODY),
        "expert": RequestTemplate("expert"),
    }
    questions = GSM8K.load(sums(folder, count))
    chosen: dict[str, Any] = {"templates": templates, "path": folder / "answers.jsonl"} | settings
    return CollectionRun(GSM8K, questions, **chosen)


def servers(server: ScriptedServer, retries: int = 0) -> dict[Role, ModelServer]:
    """Both models on one server."""
    return {name: ModelServer(server.base_url, name, timeout=20.0, retries=retries) for name in ("draft", "expert")}


def collect(server: ScriptedServer, folder: Path, count: int, **settings: Any) -> CollectionSummary:
    """Ask both models every question."""
    return collection(folder, count, **settings).run(servers(server))


def recorded_answers(path: Path) -> list[RecordedAnswer]:
    """The answers and failures in an answers file, without the questions."""
    return [line for line in read_answers(path) if not isinstance(line, RecordedQuestion)]


def arguments(server: ScriptedServer, folder: Path, count: int) -> list[str]:
    """The arguments of ``bpac collect``."""
    return [
        "collect",
        *("--benchmark", "gsm8k", "--file", str(sums(folder, count))),
        *("--draft-url", server.base_url, "--draft-model", "draft"),
        *("--expert-url", server.base_url, "--expert-model", "expert"),
        *("--out", str(folder / "answers.jsonl")),
    ]


def command(words: Sequence[str]) -> list[str]:
    """The command line of a ``bpac`` command."""
    return [str(Path(sys.executable).with_name("bpac")), *words]


def bpac(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a ``bpac`` command to its end."""
    return subprocess.run(command(words), capture_output=True, text=True, check=False, timeout=300)
