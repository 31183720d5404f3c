"""The base install: what works without any extra, and what is said of the rest."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from bpac import __version__
from bpac.cli.program import COMMANDS
from tests.install.environments import EXTRAS, ROOT, Ended, Environment, check_missing, new_environment
from tests.install.inputs import NOWHERE, collect_command, write_answers, write_table
from tests.install.servers import write_config

# Runs commands in one process, since each new one imports numpy, and prints how they ended.
RUN = """
import contextlib, io, json, sys
from bpac.cli import main
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
# Writes a store.
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


@pytest.fixture
def base(tmp_path: Path, wheel: Path) -> Iterator[Environment]:
    """An environment without any extra, and a table, answers, a configuration and a store in its folder."""
    environment = new_environment(tmp_path, wheel, extras=())
    write_table(environment.work)
    write_answers(environment.work)
    write_config(environment.work, NOWHERE)
    (environment.work / "table.parquet").write_bytes(b"PAR1")
    environment.python(PLAY, PYTHONPATH=str(ROOT))
    yield environment
    shutil.rmtree(tmp_path)


# One test to an environment: however tests are spread over processes, it is made once.
def test_the_base_install_runs_what_needs_no_extra_and_names_the_extras_of_the_rest(base: Environment) -> None:
    """Commands that need an extra end in one line that names it, and change nothing."""
    for program in (("bpac",), ("python", "-m", "bpac")):
        assert base.run(*program, "--version") == (0, f"bpac {__version__}\n", "")
    help_text = base.run("bpac", "--help")
    assert (help_text.code, help_text.err) == (0, "")
    assert re.findall(r"^    (\w+)", help_text.out, re.MULTILINE) == list(COMMANDS)

    _every_help_can_be_read(base)
    _commands_without_an_extra_work(base)
    _commands_with_an_extra_name_it(base)

    # Every other module can be imported without any extra; computer algebra is a program of its own.
    modules = set(base.python(IMPORT_ALL).split()) - {"bpac.grading.mathematics.algebra"}
    packages = {".".join(module.split(".")[:2]) for module in modules}
    assert packages <= {"bpac.demo", "bpac.gateway", "bpac.models", "bpac.plugins", "bpac.remote", "bpac.stores"}
    assert all(module.startswith("bpac.stores.redis") for module in modules if module.startswith("bpac.stores"))


def _every_help_can_be_read(base: Environment) -> None:
    for command, done in zip(COMMANDS, _ended(base, [[command, "--help"] for command in COMMANDS]), strict=True):
        assert (done.code, done.err) == (0, ""), command


def _commands_without_an_extra_work(base: Environment) -> None:
    calls = [
        ["replay", "table.csv", "--trace", "trace.csv", "--html", "page.html", "--json"],
        ["import", "table.csv", "--out", "imported.csv", "--json"],
        ["validate", "--streams", "4", "--steps", "50", "--json"],
        ["status", "gateway.toml"],
        ["status", "gateway.toml", "--json"],
        ["export", "gateway.toml", "--out", "journal.jsonl"],
        ["audit", "journal.jsonl"],
        ["audit", "journal.jsonl", "--json"],
    ]
    reports: dict[str, Any] = {}
    for call, done in zip(calls, _ended(base, calls), strict=True):
        assert (done.code, done.err) == (0, ""), call
        if "--json" in call:
            reports[call[0]] = json.loads(done.out)
    assert reports["replay"]["steps"] == 300
    assert reports["import"]["rows"] == 300
    assert reports["validate"]["streams"] == 4
    assert [game["steps"] for game in reports["status"]["games"]] == [200]
    assert (reports["audit"]["rounds"], reports["audit"]["differences"]) == (200, [])


def _commands_with_an_extra_name_it(base: Environment) -> None:
    calls = {
        ("serve", "gateway.toml"): "gateway",
        ("demo", "--once"): "demo",
        tuple(collect_command(NOWHERE, "math")): "models",
        ("chain", "--out", "chain"): "figures",
        ("reproduce", "stall", "--out", "report"): "figures",
        ("replay", "table.csv", "--figure", "figure.png"): "figures",
        ("replay", "table.parquet"): "parquet",
    }
    before = _files(base.work)
    for extra, done in zip(calls.values(), _ended(base, list(calls)), strict=True):
        check_missing(done, extra)
    check_missing(base.run("python", "-m", "bpac.local"), "local")
    assert _files(base.work) == before
    check_missing(base.run("bpac", "grade", "answers.jsonl", "--out", "grades.jsonl"), "grading")


def _files(place: Path) -> dict[Path, bytes]:
    """All that a command may have left behind."""
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _ended(base: Environment, calls: Sequence[Sequence[str]]) -> list[Ended]:
    return [Ended(*ended) for ended in json.loads(base.python(RUN, calls))]


def test_nothing_imports_an_extra_before_it_is_needed() -> None:
    """Where all extras are installed, neither the library nor the list of all commands imports any of them."""
    required = {Requirement(text).name for name, texts in EXTRAS.items() if name != "dev" for text in texts} - {"bpac"}
    extras = {name for name, packages in packages_distributions().items() if required & set(packages)}
    assert not _imported_by("import bpac") & extras
    assert not _imported_by("from bpac.cli.program import build_parser; build_parser()") & extras
    assert _imported_by("import bpac.models.client") & extras == {"aiohttp"}


def test_importing_the_library_imports_numpy_and_the_standard_library_only() -> None:
    """So ``import bpac`` takes little more time than numpy does; ``make bench`` prints how much."""
    more = _imported_by("import bpac") - _imported_by("import numpy")
    assert more - sys.stdlib_module_names == {"bpac"}


def _imported_by(code: str) -> set[str]:
    """The packages that some code imports in the environment of these tests."""
    program = f"import sys; {code}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
