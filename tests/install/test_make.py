"""What the Makefile installs."""

import os
import subprocess

from tests.install.environments import ROOT


def test_make_demo_installs_the_extra_demo_and_says_what_it_does() -> None:
    """It has an environment of its own without the tools of the tests, and a line for each step."""
    command = ["make", "--dry-run", "--always-make", "--no-print-directory", "demo", "ONCE=1"]
    # Without the settings of a make that runs these tests.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=True)
    assert ".venv-demo/bin/pip install --quiet --disable-pip-version-check --editable '.[demo]'" in done.stdout
    assert ".[dev]" not in done.stdout
    steps = [line for line in done.stdout.splitlines() if line.startswith('echo "==> ')]
    assert [step.split()[2] for step in steps] == ["Making", "Installing", "Starting"]
    assert done.stdout.splitlines()[-1].split() == [".venv-demo/bin/bpac", "demo", "--once"]
