"""The files below ``deploy/``, and the programs that check and run them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
# Programs that make puts beside Python come first; Debian keeps servers in /usr/sbin, which is not on everyone's path.
_PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"])


def program(name: str) -> str:
    """The path of a program; its absence is a failure, not a reason to skip a test."""
    found = shutil.which(name, path=_PATH)
    assert found, f"{name} is not installed: run make deploy-tools"
    return found


def run(name: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run a program from the root of the repository."""
    return subprocess.run(
        [program(name), *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def passes(name: str, *arguments: str | Path) -> str:
    """What a program prints; it must find no fault."""
    done = run(name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def documents(file: Path) -> list[Any]:
    """All documents of a YAML file."""
    return [found for found in yaml.safe_load_all(file.read_text()) if found is not None]


def compose() -> dict[str, Any]:
    """The compose file; YAML's merge keys are resolved."""
    (found,) = documents(DEPLOY / "compose.yaml")
    assert isinstance(found, dict)
    return found


def yaml_files() -> list[Path]:
    """All YAML files below ``deploy/``."""
    return sorted(path for path in DEPLOY.rglob("*") if path.suffix in (".yaml", ".yml"))
