"""Models, and a small disk that can be filled."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpac.testing import ScriptedServer
from tests.gateway.store.disks import MODELS


@pytest.fixture
def models() -> Iterator[ScriptedServer]:
    """Both models."""
    with ScriptedServer(MODELS) as server:
        yield server


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if shutil.which("mount") is None:
        pytest.skip("a disk in memory cannot be mounted: there is no command mount")
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a disk in memory cannot be mounted: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)
