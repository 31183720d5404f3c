"""One run of all clients: scripted models, one gateway, and programs that run the clients side by side."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bpac.testing import ScriptedServer
from tests.clients.catalogue import ROWS, Cell
from tests.clients.models import answer
from tests.clients.programs.expected import KEY, place
from tests.gateway.configured import ALL_ROLES, get_json, settings
from tests.gateway.running import RunningGateway
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
NODE = ROOT / "tests" / "clients" / "node"
# Clients that need other versions of our own dependencies have an environment of their own; see the Makefile.
HOME = ROOT / ".venv-clients"
INSTALLED = (HOME / "bin" / "python", NODE / "node_modules")
INSTALL = "make .venv-clients/ready tests/clients/node/node_modules/.package-lock.json"
# What a draft with tool calls is scored with: models give no log-probabilities of them.
SCORE = {"name": "perplexity", "otherwise": 0.5}
LIMIT = 600.0  # seconds; programs that take longer are killed, and their other checks count as failed


class Found(NamedTuple):
    """What a run found.

    Parameters
    ----------
    errors: the checks that were made, each with what went wrong; empty if nothing did.
    games: the status of the game of each route.
    outputs: what each program wrote to its standard output and error.
    """

    errors: dict[Cell, str]
    games: dict[str, dict[str, Any]]
    outputs: dict[str, str]


def run_clients(directory: Path) -> Found:
    """Run all clients once."""
    assert all(path.exists() for path in INSTALLED), f"the clients are not installed; install them: {INSTALL}"
    proxy_port = free_port()
    with ScriptedServer(answer) as models, RunningGateway(_config(models.base_url)) as gateway:
        with _litellm_proxy(gateway.url, proxy_port, directory):
            outputs = _run_programs(gateway.url, f"http://127.0.0.1:{proxy_port}", directory)
        gateway.idle()
        status = get_json(f"{gateway.url}/v1/status", KEY)["routes"]
    games = {route: game for route, (game,) in status.items()}
    return Found(_errors(directory), games, outputs)


def _config(base_url: str) -> dict[str, Any]:
    """A gateway with keys and, for each client, a route whose drafts are kept and one whose expert answers."""
    key = {"name": "clients", "key": KEY, "roles": ALL_ROLES}
    config = settings(base_url, gateway={"keys": [key]}, model={"timeout": 60.0}, score=SCORE)
    (route,) = config["routes"].values()
    config["routes"] = {
        row.route(who): {**route, "policy": policy}
        for row in ROWS
        for who, policy in (("draft", "never"), ("expert", "always"))
    }
    return config


def _run_programs(url: str, proxy: str, directory: Path) -> dict[str, str]:
    """What each program wrote; all of them run at the same time."""
    running = {}
    for name in dict.fromkeys(row.program for row in ROWS):
        plan, results, log = (directory / f"{name}.{kind}" for kind in ("json", "jsonl", "log"))
        plan.write_text(json.dumps(_places(name, url, proxy)), encoding="utf-8")
        with log.open("wb") as output:
            command = [*_command(name), str(plan), str(results)]
            running[log] = subprocess.Popen(
                command, cwd=ROOT, env=_environment(directory), stdout=output, stderr=output
            )
    end = time.monotonic() + LIMIT
    for process in running.values():
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return {log.stem: log.read_text(encoding="utf-8", errors="replace") for log in running}


def _places(program: str, url: str, proxy: str) -> list[dict[str, str]]:
    """Where the clients of a program send their requests, and what they must get there."""
    rows = [row for row in ROWS if row.program == program]
    return [place(row, who, url, proxy) for row in rows for who in ("draft", "expert")]


def _command(program: str) -> list[str]:
    if (NODE / f"{program}.js").exists():
        return [str(Path(sys.executable).with_name("node")), str(NODE / f"{program}.js")]
    python = sys.executable if program == "official_clients" else str(HOME / "bin" / "python")
    return [python, "-m", f"tests.clients.programs.{program}"]


def _environment(directory: Path) -> Mapping[str, str]:
    """No keys and settings of the machine that the tests run on; and LiteLLM fetches no list of prices."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "PATH")}
    return {**kept, "LLM_USER_PATH": str(directory / "llm"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@contextmanager
def _litellm_proxy(url: str, port: int, directory: Path) -> Iterator[None]:
    """LiteLLM's proxy with the gateway as its provider; it takes seconds to start, and is not waited for."""
    if not any(row.client == "LiteLLM proxy" for row in ROWS):
        yield
        return
    config, log = directory / "litellm.yaml", directory / "litellm_proxy_server.log"
    config.write_text(json.dumps(_proxy_config(url)), encoding="utf-8")  # YAML includes JSON
    command = [str(HOME / "bin" / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        environment = {**_environment(directory), "LITELLM_MASTER_KEY": KEY, "LITELLM_LOG": "ERROR"}
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(60.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _proxy_config(url: str) -> dict[str, Any]:
    listed = []
    for row in ROWS:
        provider, base = ("anthropic", url) if row.door == "messages" else ("openai", f"{url}/v1")
        for route in [row.route(who) for who in ("draft", "expert")] if row.client == "LiteLLM proxy" else ():
            params = {"model": f"{provider}/{route}", "api_base": base, "api_key": KEY}
            listed.append({"model_name": route, "litellm_params": params})
    return {"model_list": listed}


def _errors(directory: Path) -> dict[Cell, str]:
    """The checks that the programs made, each with its errors on both routes."""
    errors: dict[Cell, str] = {}
    for file in directory.glob("*.jsonl"):
        for line in file.read_text(encoding="utf-8").splitlines():
            client, door, capability, who, error = json.loads(line)
            cell = Cell(client, door, capability)
            errors[cell] = errors.get(cell, "") + (f"with the {who}: {error}\n" if error else "")
    return errors
