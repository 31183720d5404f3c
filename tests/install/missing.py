"""What a command says where one extra is installed and it needs another one, too."""

from collections.abc import Callable

from tests.install.environments import Environment, check_missing
from tests.install.inputs import NOWHERE, collect_command, write_answers, write_table
from tests.install.servers import write_config


def figures(environment: Environment) -> None:
    """Replays on a cluster need the extra ``dask``."""
    write_table(environment.work)
    tables = ("reproduce", "--tables", "table.csv", "--runs", "1", "--out", "report")
    check_missing(environment.run("bpac", *tables, "--dask", "tcp://127.0.0.1:9"), "dask")


def models(environment: Environment) -> None:
    """Questions from the hub need ``datasets``, and the graders of mathematics ``grading``."""
    check_missing(environment.run("bpac", *collect_command(NOWHERE, "gsm8k", file=None)), "datasets")
    write_answers(environment.work)
    check_missing(environment.run("bpac", "grade", "answers.jsonl", "--out", "grades.jsonl"), "grading")


def gateway(environment: Environment) -> None:
    """Traces and the loss by embeddings need extras of their own."""
    write_config(environment.work, NOWHERE, {"traces": True})
    check_missing(environment.run("bpac", "serve", "gateway.toml"), "traces")
    write_config(environment.work, NOWHERE, {"store": "redis://127.0.0.1:9"})
    check_missing(environment.run("bpac", "serve", "gateway.toml"), "redis")
    check_missing(environment.run("bpac", "status", "gateway.toml"), "redis")
    write_config(environment.work, NOWHERE, loss="embedding")
    check_missing(environment.run("bpac", "serve", "gateway.toml"), "embeddings")


def local(environment: Environment) -> None:
    """The report of the whole chain has figures."""
    check_missing(environment.run("bpac", "chain", "--out", "chain"), "figures")


MISSING: dict[str, Callable[[Environment], None]] = {
    "figures": figures,
    "models": models,
    "gateway": gateway,
    "local": local,
}
