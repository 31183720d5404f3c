"""Servers for commands under test: a gateway in an environment, and what it talks to."""

import json
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for
from tests.gateway.serving import to_toml
from tests.install.environments import Environment
from tests.ports import free_port


@contextmanager
def serving(environment: Environment, more: dict[str, Any] | None = None, **variables: str) -> Iterator[str]:
    """A gateway in front of two scripted models, once it has answered a request; it must end well."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with ScriptedServer(Reply("42", probability=0.7)) as server:
        write_config(environment.work, server.base_url, {"listen": f"127.0.0.1:{port}", **(more or {})})
        with environment.running("bpac", "serve", "gateway.toml", **variables) as process:
            wait_for(lambda: _is_ready(process, url), 60.0)
            answer = post(f"{url}/v1/chat/completions", question("6 · 7?"))
            assert answer["choices"][0]["message"]["content"] == "42"
            yield url
            ends_well(process)


def write_config(work: Path, base_url: str, gateway: dict[str, Any] | None = None, **route: Any) -> None:
    """Write ``gateway.toml`` for a gateway that asks the expert every time."""
    own = {"store": "sqlite:///bpac.db", **(gateway or {})}
    text = to_toml(settings(base_url, gateway=own, policy="always", **route))
    (work / "gateway.toml").write_text(text, encoding="utf-8")


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A server that takes traces as OpenTelemetry's collector does: its address, and what it received."""
    received: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", received
        finally:
            server.shutdown()
            thread.join()


def _is_ready(process: "subprocess.Popen[str]", url: str) -> bool:
    assert process.poll() is None, "it did not start: see its log"
    try:
        return bool(get_json(f"{url}/readyz"))
    except (urllib.error.URLError, ConnectionError):
        return False


def ends_well(process: "subprocess.Popen[str]") -> None:
    """Ask a process to end; it must end with exit code 0."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(60.0) == 0


def question(text: str) -> dict[str, Any]:
    """The body of a request."""
    return {"model": "homework", "messages": [{"role": "user", "content": text}]}


def post(url: str, body: dict[str, Any]) -> Any:
    """The JSON that a server answers."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60.0) as response:
        return json.load(response)
