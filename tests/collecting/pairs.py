"""A file of sums, a server that plays both models, and the commands between them."""

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
from bpac.testing import Reply as Said
from bpac.testing import Request, ScriptedServer

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
    """Who is asked."""
    return "draft" if request.body["model"] == "draft" else "expert"


def adds(request: Request) -> Said:
    """The expert is right; the draft is right about even numbers, and less sure of the odd ones."""
    n = number(request)
    if role(request) == "expert":
        return Said(f"So \\boxed{{{2 * n}}}", reasoning="two times that")
    return Said(f"So \\boxed{{{2 * n + n % 2}}}", probability=0.9 - 0.3 * (n % 2) - n / 1000)


def asked_of(server: ScriptedServer) -> Counter[tuple[int, Role]]:
    """How often each question was asked of each model."""
    return Counter((number(request), role(request)) for request in server.requests)


def collection(folder: Path, count: int, **settings: Any) -> CollectionRun:
    """The questions of a file, to be asked of a draft and an expert."""
    recipes: dict[Role, RequestTemplate] = {
        "draft": RequestTemplate("draft", BODY),
        "expert": RequestTemplate("expert"),
    }
    questions = GSM8K.load(sums(folder, count))
    chosen: dict[str, Any] = {"recipes": recipes, "path": folder / "answers.jsonl"} | settings
    return CollectionRun(GSM8K, questions, **chosen)


def servers(server: ScriptedServer, retries: int = 0) -> dict[Role, ModelServer]:
    """Both models on one server."""
    return {name: ModelServer(server.base_url, name, timeout=20.0, retries=retries) for name in ("draft", "expert")}


def collect(server: ScriptedServer, folder: Path, count: int, **settings: Any) -> CollectionSummary:
    """Ask everything."""
    return collection(folder, count, **settings).run(servers(server))


def replies(path: Path) -> list[RecordedAnswer]:
    """What a file of answers holds, questions left out."""
    return [line for line in read_answers(path) if not isinstance(line, RecordedQuestion)]


def arguments(server: ScriptedServer, folder: Path, count: int) -> list[str]:
    """Of ``bpac collect``."""
    return [
        "collect",
        *("--benchmark", "gsm8k", "--file", str(sums(folder, count))),
        *("--draft-url", server.base_url, "--draft-model", "draft"),
        *("--expert-url", server.base_url, "--expert-model", "expert"),
        *("--out", str(folder / "answers.jsonl")),
    ]


def command(words: Sequence[str]) -> list[str]:
    """A ``bpac`` command to start."""
    return [str(Path(sys.executable).with_name("bpac")), *words]


def bpac(*words: str) -> subprocess.CompletedProcess[str]:
    """A ``bpac`` command, run to its end."""
    return subprocess.run(command(words), capture_output=True, text=True, check=False, timeout=300)
