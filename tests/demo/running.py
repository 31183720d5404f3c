"""Runs demos in their own processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from bpac.cli.program import main
from tests.gateway.configured import get_json, wait_for
from tests.ports import free_port
from tests.processes import has_ended

PROGRAM = Path(sys.executable).with_name("bpac")


def output_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The standard output of a command that must succeed."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def status_of(directory: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The only game of a demo in the output of ``bpac status``."""
    (game,) = json_of(output_of(capsys, "status", directory / "gateway.toml", "--json"))["games"]
    assert isinstance(game, dict)
    return game


class RunningDemo:
    """``bpac demo`` with a scripted pair and too many questions to end by itself; it has already answered a few.

    Parameters
    ----------
    directory: directory of its files.
    more: further arguments.
    """

    def __init__(self, directory: Path, *more: str) -> None:
        # Two demos that look for the default port at the same time would both find it free.
        port = free_port()
        arguments = [
            "demo",
            "--scripted",
            "--questions",
            "1000000",
            "--json",
            "--dir",
            directory,
            "--port",
            port,
            *more,
        ]
        self._process = subprocess.Popen(
            [PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._status = f"http://127.0.0.1:{port}/v1/status"
        wait_for(self._has_answered, 60.0)
        self.family = psutil.Process(self._process.pid).children(recursive=True)

    def _has_answered(self) -> bool:
        assert self._process.poll() is None, self._process.communicate()
        try:
            (game,) = get_json(self._status)["routes"]["demo"]
        except OSError:
            return False
        return bool(game["steps"] >= 20)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self) -> tuple[int, str, str]:
        """Wait until it has ended: exit code, standard output and standard error. No process may be left."""
        output, errors = self._process.communicate(timeout=60.0)
        assert self.family
        wait_for(lambda: all(has_ended(child.pid) for child in self.family))
        return self._process.returncode, output, errors


def json_of(text: str) -> dict[str, Any]:
    """The only line of an output, as a JSON object."""
    (line,) = text.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found
