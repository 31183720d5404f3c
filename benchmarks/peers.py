"""LiteLLM's proxy, in an environment of its own: it needs other versions of the gateway's dependencies."""

import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.processes import Server, free_port, running

PACKAGE = "litellm[proxy]==1.106.2"
KEY = "sk-0123456789-of-the-benchmark"
CONFIG = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{upstream}", api_key: none}}
"""


def installed(home: Path) -> Path:
    """The directory of its commands, after installing it if it is not installed yet."""
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "--quiet", PACKAGE], check=True)
        (home / "ready").touch()
    return home / "bin"


def litellm(upstream: str, home: Path, directory: Path) -> AbstractContextManager[Server]:
    """Its proxy in front of an upstream, started as its manual says: one worker, no database, no callbacks."""
    config, port = directory / "litellm.yaml", free_port()
    config.write_text(CONFIG.format(upstream=upstream))
    command = [str(installed(home) / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    # Without the first setting it would fetch a list of prices from the network.
    settings = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY, "LITELLM_LOG": "ERROR"}
    return running("LiteLLM", command, port, settings, key=KEY, start_timeout=120.0)
