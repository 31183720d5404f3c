"""The program ``bpac``: its commands, and what it imports for them."""

import argparse
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpac import __version__
from bpac.cli.program import COMMANDS, build_parser, main
from bpac.errors import MissingExtra


@pytest.mark.parametrize("program", [["bpac"], ["python", "-m", "bpac"]], ids=" ".join)
def test_the_installed_program_knows_its_version(program: list[str]) -> None:
    """``bpac`` and ``python -m bpac`` are the same program; calling it without a command is wrong usage."""
    command = [str(Path(sys.executable).with_name(program[0])), *program[1:]]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"bpac {__version__}\n"
    wrong = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("usage: bpac ")


def test_a_command_imports_only_its_own_module() -> None:
    """What one command needs, even if it is broken or not installed, keeps no other from running."""
    code = (
        f"import sys; from bpac.cli.program import COMMANDS, main; "
        f"main({['validate', '--streams', '1', '--steps', '9']}); "
        "print(*(name for name in COMMANDS if f'bpac.cli.commands.{name}' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "validate"


def test_a_command_module_without_its_extra_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the module itself cannot be imported, for its command and for the list of all."""

    def cannot_be_imported(_: str) -> None:
        raise MissingExtra("it", "more")

    monkeypatch.setattr(importlib, "import_module", cannot_be_imported)
    for arguments in (["audit"], ["--help"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err == "bpac: this needs it: install it with  pip install 'bpac[more]'\n"


def test_each_module_adds_the_command_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Each adds one command, and a misspelt command is answered with all of them."""
    for called, names in [*((command, (command,)) for command in COMMANDS), ("reply", COMMANDS)]:
        with pytest.raises(SystemExit, match="2"):
            build_parser(called).parse_args(["reply"])
        assert tuple(re.findall(r"\w+", capsys.readouterr().err.rpartition("choose from")[2])) == names


def _commands(parser: argparse.ArgumentParser, before: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its name, and the commands of commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield f"{before}{name}", command
                yield from _commands(command, f"{before}{name} ")


def test_the_help_of_every_command_says_what_it_does_and_names_every_default() -> None:
    """A command's help begins with a sentence; an option that has a default says ``(default: X)`` or ``default: X``."""
    commands = list(_commands(build_parser()))
    assert "games move" in [name for name, _ in commands], "commands of commands are among them"
    for name, command in commands:
        assert re.fullmatch(r"[A-Z].{10,}\.", command.description or ""), name
        for option in command._actions:
            if isinstance(option, argparse._SubParsersAction):
                continue
            text = argparse.HelpFormatter("bpac")._expand_help(option)
            assert len(text) > 10, (name, option.dest)
            if option.option_strings and option.nargs != 0 and option.default not in (None, "", []):
                assert "default: " in text, (name, option.dest, text)
