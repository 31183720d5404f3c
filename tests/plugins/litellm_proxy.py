"""LiteLLM's proxy, in an environment of its own, which ``make test`` makes: it needs other versions of packages."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.gateway.configured import wait_for
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
KEY = "sk-of-the-tests"


def litellm_environment() -> Path:
    """The environment: ``$BPAC_LITELLM`` if it is set, otherwise the one that ``make test`` makes."""
    home = Path(os.environ.get("BPAC_LITELLM", ROOT / ".venv-clients"))
    if not (home / "bin" / "litellm").exists():
        pytest.fail(f"LiteLLM is not installed in {home}: run  make .venv-clients/ready  or set BPAC_LITELLM")
    return home


@contextmanager
def litellm_proxy(config: str, folder: Path) -> Iterator[str]:
    """The address of a proxy with that configuration, while it runs."""
    port, path = free_port(), folder / "litellm.yaml"
    path.write_text(config, encoding="utf-8")
    sources = os.pathsep.join(entry for entry in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if entry)
    # Without the first setting it would fetch a list of prices from the network.
    settings = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY, "PYTHONPATH": sources}
    command = [litellm_environment() / "bin" / "litellm", "--config", path, "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "litellm.log").open("wb") as log:
        process = subprocess.Popen(list(map(str, command)), env=os.environ | settings, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            assert process.poll() is None, (folder / "litellm.log").read_text()
            try:
                with urllib.request.urlopen(f"{url}/health/liveliness", timeout=1.0):
                    return True
            except (urllib.error.URLError, OSError):
                return False

        try:
            wait_for(answers, 120.0)
            yield url
        finally:
            process.terminate()
            process.wait(60.0)
            sys.stdout.write((folder / "litellm.log").read_text(errors="replace")[-20_000:])  # shown if a test fails
