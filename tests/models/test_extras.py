"""A missing extra is named by an error, and is not needed for anything else."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "named", "extra"),
    [
        ("bpac.models.client", "aiohttp", "aiohttp", "models"),
        ("bpac.models.embedding", "tokenizers", "tokenizers and safetensors", "embeddings"),
        ("bpac.models.embedding", "safetensors", "tokenizers and safetensors", "embeddings"),
    ],
)
def test_a_missing_extra_is_named(module: str, package: str, named: str, extra: str) -> None:
    """The error says what to install."""
    code = f"import sys; sys.modules[{package!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"MissingExtra: this needs {named}" in done.stderr
    assert f"pip install 'bpac[{extra}]'" in done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "bpac.answer",
        "bpac.scores",
        "bpac.losses",
        "bpac.models.judging",
        "bpac.stores",
        "bpac.testing",
        "bpac.wire.stream",
    ],
)
def test_no_extra_is_needed_for_the_rest(module: str) -> None:
    """Answers, scores, losses, judges, stores, the wire codec and the scripted server need no extra."""
    gone = "".join(f"sys.modules[{name!r}] = None; " for name in ("aiohttp", "tokenizers", "safetensors"))
    subprocess.run([sys.executable, "-c", f"import sys; {gone}import {module}"], check=True)
