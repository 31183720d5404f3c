"""Running a command in this process."""

import json
from typing import Any

import pytest

from bpac.cli.program import main


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The one JSON object a command prints; it must print nothing else."""
    assert main([*arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result
