"""The wheel in an empty environment: what each way of installing it promises, and what it says of the rest."""

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bpac import __version__
from bpac.cli.main import FAMILIES
from tests.gateway.configured import settings
from tests.gateway.serving import to_toml

ROOT = Path(__file__).parents[1]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
COMMANDS = [command for commands in FAMILIES.values() for command in commands]
SERVERS = ["--draft-url", "http://127.0.0.1:9/v1", "--draft-model", "a"]
SERVERS += ["--expert-url", "http://127.0.0.1:9/v1", "--expert-model", "b"]

# Runs commands in one process, since each new one imports numpy, and prints how they ended.
RUN = """
import contextlib, io, json, sys
from bpac.cli.main import main
ended = []
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    ended.append((code, out.getvalue(), err.getvalue()))
json.dump(ended, sys.stdout)
"""
# Writes a store, without msgspec where that is not installed.
PLAY = """
from bpac.stores import open_store
from tests.stores.journals import play
store = open_store("sqlite:///bpac.db")
play(store, 200)
store.close()
"""
# Prints the modules that cannot be imported.
IMPORT_ALL = """
import importlib, pkgutil, bpac
for module in pkgutil.walk_packages(bpac.__path__, "bpac."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            print(module.name)
"""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Environment(NamedTuple):
    """A virtual environment with nothing in it but the wheel and what it depends on."""

    place: Path

    def python(self, program: str, given: object = None, path: str = "") -> str:
        """What a program prints that runs in it, with the place as its directory."""
        done = subprocess.run(
            [self.place / "bin" / "python", "-c", program],
            cwd=self.place,
            env=self._variables | ({"PYTHONPATH": path} if path else {}),
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, *arguments: str) -> Ended:
        """How ``bpac`` ends, called as a program."""
        done = subprocess.run(
            [self.place / "bin" / "bpac", *arguments],
            cwd=self.place,
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def commands(self, calls: Sequence[Sequence[str]]) -> list[Ended]:
        """How some commands end."""
        return [Ended(*ended) for ended in json.loads(self.python(RUN, calls))]

    @property
    def _variables(self) -> dict[str, str]:
        # Modules are those of the environment, not those of whoever runs the tests.
        return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"TQDM_DISABLE": "1"}


def installed(place: Path, extras: str = "") -> Environment:
    """An empty environment with the wheel of this source tree and those extras, such as ``[gateway]``."""
    subprocess.run([*PIP, "wheel", "--no-deps", "--wheel-dir", place / "wheel", ROOT], check=True)
    (wheel,) = (place / "wheel").iterdir()
    venv.create(place, with_pip=False)
    subprocess.run([*PIP, "--python", place / "bin" / "python", "install", f"{wheel}{extras}"], check=True)
    return Environment(place)


def files(place: Path) -> set[Path]:
    """All that a command may have left behind."""
    return {path for path in place.rglob("*") if path.suffix != ".pyc" and path.name != "__pycache__"}


@pytest.fixture
def base(tmp_path: Path) -> Environment:
    """The base install, beside a table, a configuration and a store."""
    environment = installed(tmp_path)
    rows = [f"{number % 100 / 100},{int(number % 7 == 0)}\n" for number in range(300)]
    (tmp_path / "table.csv").write_text("uncertainty,loss\n" + "".join(rows), encoding="utf-8")
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    data = settings("http://127.0.0.1:9/v1", gateway={"store": "sqlite:///bpac.db"})
    (tmp_path / "gateway.toml").write_text(to_toml(data), encoding="utf-8")
    environment.python(PLAY, path=str(ROOT))
    return environment


# One test to an environment: however tests are spread over processes, it is made once.
def test_the_base_install(base: Environment) -> None:
    """Everything that needs no extra runs; the rest ends in one line that names the extra, and changes nothing."""
    assert base.command("--version") == (0, f"bpac {__version__}\n", "")
    help_text = base.command("--help")
    assert (help_text.code, help_text.err) == (0, "")
    assert re.findall(r"^    (\w+)", help_text.out, re.MULTILINE) == COMMANDS

    reports = _run_all(base)
    assert reports["replay"]["steps"] == 300
    assert reports["validate"]["streams"] == 4
    assert [game["steps"] for game in reports["status"]["games"]] == [200]
    assert (reports["audit"]["rounds"], reports["audit"]["differences"]) == (200, [])
    _refused(base)

    # Every other module can be imported without any extra; computer algebra is a program of its own.
    modules = set(base.python(IMPORT_ALL).split()) - {"bpac.grading.mathematics.algebra"}
    packages = {".".join(module.split(".")[:2]) for module in modules}
    assert packages == {"bpac.demo", "bpac.gateway", "bpac.models", "bpac.wire"}


def _run_all(base: Environment) -> Mapping[str, Any]:
    """What commands that need no extra report as JSON."""
    calls = [
        *([command, "--help"] for command in COMMANDS),
        ["replay", "table.csv", "--json", "--trace", "trace.csv", "--html", "page.html"],
        ["validate", "--streams", "4", "--steps", "50", "--json"],
        ["status", "gateway.toml"],
        ["status", "gateway.toml", "--json"],
        ["export", "gateway.toml", "--out", "journal.jsonl"],
        ["audit", "journal.jsonl"],
        ["audit", "journal.jsonl", "--json"],
    ]
    ended = base.commands(calls)
    failed = [(call, how) for call, how in zip(calls, ended, strict=True) if how.code or how.err]
    assert not failed
    return {call[0]: json.loads(how.out) for call, how in zip(calls, ended, strict=True) if "--json" in call}


def _refused(base: Environment) -> None:
    """Commands whose extra is missing, and the extra."""
    calls = {
        ("serve", "gateway.toml"): "gateway",
        ("demo", "--once"): "demo",
        ("collect", "--benchmark", "gsm8k", *SERVERS, "--out", "answers.jsonl"): "models",
        ("chain", "--out", "chain"): "figures",
        ("reproduce", "stall", "--out", "report"): "figures",
        ("replay", "table.csv", "--figure", "figure.png"): "figures",
        ("replay", "table.parquet"): "parquet",
    }
    before = files(base.place)
    for (call, extra), how in zip(calls.items(), base.commands(list(calls)), strict=True):
        assert (how.code, how.out) == (2, ""), call
        assert how.err.startswith("bpac: this needs "), call
        assert how.err.endswith(f": install it with  pip install 'bpac[{extra}]'\n"), call
        assert how.err.count("\n") == 1, call
    assert files(base.place) == before
