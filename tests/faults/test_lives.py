"""The parent of the gateways: what has ended is known to have ended, and a gateway that does not start says why."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.gateway import Gateway
from tests.faults.lives import Lives
from tests.gateway.configured import wait_for


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    """A parent."""
    with closing(Lives()) as found:
        yield found


def test_a_number_of_a_process_that_has_ended_is_not_used_again(lives: Lives, tmp_path: Path) -> None:
    """Neither that of one that ended by itself, nor one that the system has given to somebody else since."""
    pid = lives.start(["policies"], tmp_path / "log")
    wait_for(lambda: not lives.is_alive(pid))
    lives.end(pid)  # nothing happens
    lives._living.add(os.getpid())  # as if this process had got the number
    assert not lives.is_alive(os.getpid())
    assert not lives._living


def test_a_gateway_that_does_not_start_says_why(lives: Lives, tmp_path: Path) -> None:
    """The error has the end of its log, and nobody starts it again."""
    gateway = Gateway(lives, tmp_path / "gateway", "http://127.0.0.1:9/v1", "redis://127.0.0.1:1/0?name=nowhere")
    gateway.start()
    with pytest.raises(AssertionError, match=r"(?s)a gateway has ended: .*Redis at 127.0.0.1:1 cannot be used"):
        gateway.wait_until_ready()
    assert not gateway.is_alive()
