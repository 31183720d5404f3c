"""Each extra, installed alone, is enough for the commands that it is for; so is each install line of the documents."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.install.documents import install_lines
from tests.install.environments import EXTRAS, Environment, new_environment, resolve
from tests.install.missing import MISSING
from tests.install.promises import COMPANIONS, PROMISES, TOGETHER

# torch takes 200 MB and more, and only scripts that are not in the wheel use it: it is not installed.
RESOLVED = frozenset({"train"})
# Its environment takes 600 MB: make test makes it once, and tests/plugins runs LiteLLM's proxy there.
ELSEWHERE = frozenset({"litellm"})
# The environment in which these tests themselves run.
OURS = frozenset({"dev"})
DOCUMENTED = {"+".join(sorted(line.extras)) for line in install_lines() if line.extras}
ENVIRONMENTS = sorted(((EXTRAS.keys() - RESOLVED - OURS) | DOCUMENTED) - ELSEWHERE)


def smallest_with(needed: frozenset[str]) -> frozenset[str]:
    """The smallest environment with these extras: what can be done there can be done with others beside them."""
    return min((extras for name in ENVIRONMENTS if needed <= (extras := frozenset(name.split("+")))), key=len)


@pytest.fixture
def environment(request: pytest.FixtureRequest, tmp_path: Path, wheel: Path) -> Iterator[Environment]:
    """An environment with the extras of the test's parameter; it is large, so it is removed at once."""
    extras = request.param.split("+")
    companions = [package for extra in extras for package in COMPANIONS.get(extra, ())]
    yield new_environment(tmp_path, wheel, extras, companions)
    shutil.rmtree(tmp_path)


# One test to an environment, so that each is made once, in whichever process.
@pytest.mark.parametrize("environment", ENVIRONMENTS, indirect=True)
def test_extras_are_enough_for_their_commands(environment: Environment) -> None:
    """What the extras promise can be done; where another one is needed, one line names it."""
    assert environment.run("bpac", "--help").code == 0
    if len(environment.extras) == 1:  # what an extra promises alone, it promises beside others
        (extra,) = environment.extras
        assert extra in PROMISES, f"say in tests/install/promises.py which commands the extra {extra} is for"
        PROMISES[extra](environment.at(extra))
        if extra in MISSING:
            MISSING[extra](environment.at("missing"))
    for needed, promise in TOGETHER.items():
        if environment.extras == smallest_with(needed):
            promise(environment.at("together"))


def test_versions_for_training_can_be_found(wheel: Path) -> None:
    """What the extra ``train`` needs fits together."""
    resolve(wheel, "train")


def test_the_documents_install_nothing_else() -> None:
    """Every other package that README and docs install is one that is installed here beside an extra."""
    names = {package.partition("==")[0] for packages in COMPANIONS.values() for package in packages}
    assert {other.partition("==")[0] for line in install_lines() for other in line.others} <= names
