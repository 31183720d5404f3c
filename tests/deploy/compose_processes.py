"""The services of ``deploy/compose.yaml`` as plain processes: the same commands with the same files.

Only addresses and places differ. Each ``HOST:PORT`` of the compose network becomes a free port of this machine, and
each path inside a container a path in a directory of the test, in the commands as well as in the files they read.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import bpac
from tests.deploy.tools import DEPLOY, compose, program
from tests.ports import free_port

GATEWAYS = ("gateway-1", "gateway-2", "gateway-3")
# What the entry points of the images add to the commands.
BPAC = (sys.executable, "-c", "import sys; from bpac.cli import main; sys.exit(main())")
# The package that is tested, also if its path is relative to another directory.
PACKAGE = {"PYTHONPATH": str(Path(bpac.__file__).resolve().parents[1])}
ENTRY_POINTS = {**dict.fromkeys(GATEWAYS, BPAC), "prometheus": ("prometheus",)}
PORTS = {**dict.fromkeys(GATEWAYS, 8800), "redis": 6379, "loadbalancer": 8800, "prometheus": 9090}


class ComposeProcesses:
    """Services of the compose file, each as a process, from ``start`` to the end of the ``with`` block.

    Parameters
    ----------
    directory: where their files and their data are.
    edits: further replacements in the files that they read.
    environment: the variables in ``deploy/.env``.
    """

    def __init__(self, directory: Path, edits: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._directory = directory
        self._edits = edits
        self._environment = environment
        self._services: dict[str, dict[str, Any]] = compose()["services"]
        self.ports = {name: free_port() for name in PORTS}
        self.health_port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "ComposeProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(60.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._stack.close()

    def url(self, service: str) -> str:
        """The address of a service."""
        return f"http://127.0.0.1:{self.ports[service]}"

    def bpac(self, *words: str) -> str:
        """What a command of bpac prints, run beside the first gateway with its configuration as the last word."""
        settings = self._services[GATEWAYS[0]]
        environment = {name: self._filled_in(value) for name, value in settings["environment"].items()}
        config = self._directory / GATEWAYS[0] / "etc" / "bpac" / "gateway.toml"
        command = [*BPAC, *words, str(config), "--json"]
        done = subprocess.run(command, env={**os.environ, **environment, **PACKAGE}, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def log(self, service: str) -> str:
        """What a service has printed so far."""
        return (self._directory / f"{service}.log").read_text()

    def start(self, service: str) -> None:
        """Start a service with its command from the compose file."""
        settings = self._services[service]
        places = self._files(service, settings)
        words = [*ENTRY_POINTS.get(service, ()), *settings["command"]]
        if service == "prometheus":
            # It listens on a port that only its command line can say.
            words.append(f"--web.listen-address=127.0.0.1:{self.ports[service]}")
        words = [self._filled_in(_replaced(word, places)) for word in words]
        words[0] = program(words[0])
        log = self._stack.enter_context((self._directory / f"{service}.log").open("ab"))
        environment = {name: self._filled_in(value) for name, value in settings.get("environment", {}).items()}
        self.processes[service] = subprocess.Popen(
            words, stdout=log, stderr=log, cwd=self._directory, env={**os.environ, **environment, **PACKAGE}
        )

    def _filled_in(self, text: str) -> str:
        """A text with the variables of ``deploy/.env``."""
        return re.sub(r"\$\{(\w+)[^}]*\}", lambda found: self._environment[found[1]], text)

    def _files(self, service: str, settings: Mapping[str, Any]) -> dict[str, str]:
        """Copy the files of a service, edited; where each path of its container is here."""
        home = self._directory / service
        places: dict[str, str] = {}
        for volume in settings.get("volumes", []):
            source, target = volume.split(":")[:2]
            place = home / target.strip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            places[target] = str(place)
            if not source.startswith("./"):
                place.mkdir(exist_ok=True)  # a volume with data
            elif (DEPLOY / source).is_dir():
                shutil.copytree(DEPLOY / source, place, dirs_exist_ok=True)
            else:
                shutil.copy(DEPLOY / source, place)
        for secret in settings.get("secrets", []):
            place = home / "secrets" / secret
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(self._environment["BPAC_OPERATOR_KEY"])
            places[f"/run/secrets/{secret}"] = str(place)
        for file in (path for path in home.rglob("*") if path.is_file() and "secrets" not in path.parts):
            file.write_text(_replaced(file.read_text(), {**self._addresses(service), **self._edits, **places}))
        return places

    def _addresses(self, service: str) -> dict[str, str]:
        own = f"127.0.0.1:{self.ports[service]}"
        others = {f"{name}:{port}": f"127.0.0.1:{self.ports[name]}" for name, port in PORTS.items()}
        return {
            **others,
            "loadbalancer:8404": f"127.0.0.1:{self.health_port}",
            'listen = "0.0.0.0:8800"': f'listen = "{own}"',
            "bind :8800": f"bind {own}",
            "bind :8404": f"bind 127.0.0.1:{self.health_port}",
            "bind * -::*": "bind 127.0.0.1",
            "port 6379": f"port {self.ports[service]}",
        }


def _replaced(text: str, replacements: Mapping[str, str]) -> str:
    """A text with every key replaced, the longest first, where it is not part of a longer word or path."""
    every = "|".join(map(re.escape, sorted(replacements, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.-])(?:{every})(?![\w.-])", lambda found: replacements[found[0]], text) if every else text
