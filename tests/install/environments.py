"""Empty virtual environments with the wheel of this source tree, made by uv from where pip would take packages."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What each extra requires.
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
UV = [sys.executable, "-m", "uv", "--quiet"]
# pip's settings that say where packages come from, and uv's options and variables for the same.
OPTIONS = {"index-url": "--default-index", "extra-index-url": "--index", "find-links": "--find-links"}
OPTIONS |= {"trusted-host": "--allow-insecure-host"}
VARIABLES = {"cert": "SSL_CERT_FILE", "proxy": "ALL_PROXY", "timeout": "UV_HTTP_TIMEOUT"}


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with the wheel, what it depends on and nothing else, and a folder to work in.

    Parameters
    ----------
    venv: the virtual environment.
    work: where its commands run.
    extras: the extras that were installed with the wheel.
    bytecode: where its Python keeps what it has compiled.
    """

    venv: Path
    work: Path
    extras: frozenset[str]
    bytecode: Path

    def run(self, program: str, *arguments: str, given: str = "", **variables: str) -> Ended:
        """How a program of the environment ends.

        Parameters
        ----------
        program: its name, such as ``bpac`` or ``python``.
        arguments: what follows it on the command line.
        given: what it reads from standard input.
        variables: further environment variables.
        """
        done = subprocess.run(
            self._command(program, arguments),
            cwd=self.work,
            env=self._variables(variables),
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=300.0,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def at(self, folder: str) -> "Environment":
        """The same environment with a new folder to work in."""
        place = self.work / folder
        place.mkdir()
        return replace(self, work=place)

    def report(self, *arguments: str, **variables: str) -> dict[str, Any]:
        """The JSON object that a ``bpac`` command prints, which must succeed."""
        done = self.run("bpac", *arguments, "--json", **variables)
        assert done.code == 0, done.err
        found: dict[str, Any] = json.loads(done.out)
        return found

    def python(self, program: str, given: object = None, **variables: str) -> str:
        """What a Python program prints, which must succeed; it can read a value as JSON from standard input."""
        done = self.run("python", "-c", program, given=json.dumps(given), **variables)
        assert done.code == 0, done.err
        return done.out

    @contextmanager
    def running(self, program: str, *arguments: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
        """A program that runs until the block ends, if it has not ended by then."""
        with (self.work / f"{program}.log").open("a+") as log:
            process = subprocess.Popen(
                self._command(program, arguments),
                cwd=self.work,
                env=self._variables(variables),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            try:
                yield process
            finally:
                process.kill()
                process.communicate()

    def _command(self, program: str, arguments: Iterable[str]) -> list[str]:
        return [str(self.venv / "bin" / program), *arguments]

    def _variables(self, more: dict[str, str]) -> dict[str, str]:
        # Without the modules on the path of the tests' own process.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        compiled = {"PYTHONPYCACHEPREFIX": str(self.bytecode), "PYTHONDONTWRITEBYTECODE": ""}
        return inherited | compiled | {"TQDM_DISABLE": "1"} | more


def check_missing(done: Ended, extra: str) -> None:
    """Check that a command ended with exit code 2 and one line that names the extra to install."""
    assert (done.code, done.out) == (2, ""), done
    assert re.fullmatch(rf".+: this needs .+: install it with  pip install 'bpac\[{extra}\]'\n", done.err), done


def build_wheel(folder: Path) -> Path:
    """The wheel of this source tree, built into a folder."""
    _uv(["build", "--wheel", "--python", sys.executable, "--out-dir", str(folder), *_sources(), str(ROOT)])
    (wheel,) = folder.glob("*.whl")
    return wheel


def new_environment(place: Path, wheel: Path, extras: Iterable[str], companions: Iterable[str] = ()) -> Environment:
    """A new environment in a folder.

    Parameters
    ----------
    place: the folder.
    wheel: the wheel to install.
    extras: which of its extras to install.
    companions: packages to install without what they depend on.
    """
    environment = Environment(place / "venv", place / "work", frozenset(extras), wheel.parent / "bytecode")
    environment.work.mkdir()
    _uv(["venv", "--python", sys.executable, str(environment.venv)])
    _share_bytecode(environment)
    into = ["pip", "install", "--python", str(environment.venv / "bin" / "python"), *_sources()]
    _uv([*into, _with_extras(wheel, environment.extras)])
    if companions := list(companions):
        _uv([*into, "--no-deps", *companions])
    return environment


def _share_bytecode(environment: Environment) -> None:
    """What one environment has compiled, the others use: to compile takes longer than most commands.

    Files that uv links from its cache are as old in each; Python compiles a file again if its age or its size differs.
    """
    (packages,) = (environment.venv / "lib").glob("python*/site-packages")
    shared = environment.bytecode / "packages"
    shared.mkdir(parents=True, exist_ok=True)
    own = environment.bytecode / packages.relative_to(packages.anchor)
    own.parent.mkdir(parents=True)
    own.symlink_to(shared)


def resolve(wheel: Path, extra: str) -> None:
    """Find out whether versions of all that an extra needs fit together, and install nothing."""
    _uv(["pip", "install", "--dry-run", "--python", sys.executable, *_sources(), _with_extras(wheel, [extra])])


def _with_extras(wheel: Path, extras: Iterable[str]) -> str:
    names = ",".join(sorted(extras))
    return f"{wheel}[{names}]" if names else str(wheel)


def _uv(arguments: list[str]) -> None:
    settings = _pip_settings()
    variables = {uv: settings[pip] for pip, uv in VARIABLES.items() if pip in settings}
    done = subprocess.run([*UV, *arguments], env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _sources() -> list[str]:
    """Options of uv that make it look where pip looks, and choose among all places as pip does."""
    settings = _pip_settings()
    found = [word for pip, uv in OPTIONS.items() for value in settings.get(pip, "").split() for word in (uv, value)]
    return ["--index-strategy", "unsafe-best-match", *found, *(["--no-index"] if "no-index" in settings else [])]


@cache
def _pip_settings() -> dict[str, str]:
    """What pip is configured with, in its files and by environment variables, which win."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.partition("=") for line in listed.splitlines()]
    found = [(*name.rpartition(".")[::2], str(ast.literal_eval(value))) for name, _, value in lines]
    order = ("global", "install", ":env:")
    known = sorted((entry for entry in found if entry[0] in order), key=lambda entry: order.index(entry[0]))
    return {option.removeprefix("default-"): value for _, option, value in known}
