"""What must be installed, and for what."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("bpac.models.client", "aiohttp", "models"),
        ("bpac.models.embedding", "tokenizers", "embeddings"),
        ("bpac.models.embedding", "safetensors", "embeddings"),
    ],
)
def test_a_missing_extra_is_named(module: str, package: str, extra: str) -> None:
    """Without its package a module says what to install."""
    code = f"import sys; sys.modules[{package!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"MissingExtra: this needs {'aiohttp' if extra == 'models' else 'tokenizers and safetensors'}" in done.stderr
    assert f"pip install 'bpac[{extra}]'" in done.stderr


@pytest.mark.parametrize("module", ["bpac.scores", "bpac.losses", "bpac.models.judging", "bpac.testing"])
def test_no_extra_is_needed_for_the_rest(module: str) -> None:
    """Scores, losses, judges and the scripted server import without any extra."""
    gone = "".join(f"sys.modules[{name!r}] = None; " for name in ("aiohttp", "tokenizers", "safetensors"))
    subprocess.run([sys.executable, "-c", f"import sys; {gone}import {module}"], check=True)
