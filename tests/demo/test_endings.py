import signal
from pathlib import Path

import pytest

from bpac.demo.asking import AT_ONCE
from tests.demo.running import RunningDemo, json_of, status_of


def test_ctrl_c(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is how a demo ends: with a report of what there was, exit code 0, and no process left."""
    demo = RunningDemo(tmp_path)
    demo.signal(signal.SIGINT)
    code, said, _ = demo.end()
    report = json_of(said)
    assert code == 0
    assert report["game"] == status_of(tmp_path, capsys)
    assert report["game"]["owed"] == 0
    assert (report["complete"], report["truth"]) == (False, None)
    assert Path(report["picture"]).read_bytes().startswith(b"\x89PNG")
    # Once more in the same place, now one that was to end by itself: it begins anew, and stopping it is no success.
    demo = RunningDemo(tmp_path, "--once")
    demo.signal(signal.SIGTERM)
    code, said, _ = demo.end()
    again = json_of(said)
    assert code == 130
    assert again["game"] == status_of(tmp_path, capsys)
    # Every round is of a question whose answer came, or was under way when it was stopped.
    for one in (report, again):
        assert 0 <= one["game"]["steps"] - one["questions"] <= AT_ONCE < 20 <= one["game"]["steps"]


def test_a_gateway_that_dies(tmp_path: Path) -> None:
    """The demo ends with exit code 1, and a line that says what happened and where the log is."""
    demo = RunningDemo(tmp_path / "demo")
    (gateway,) = demo.family
    gateway.kill()
    code, said, complained = demo.end()
    assert (code, said) == (1, "")
    last = complained.splitlines()[-1]
    assert last.startswith("bpac: the gateway or a model failed")
    assert "exit code -9" in last
    assert str(tmp_path / "demo" / "gateway.log") in last


def test_a_demo_that_dies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Even killed, it leaves no gateway behind, and its journal is whole."""
    demo = RunningDemo(tmp_path / "demo")
    demo.signal(signal.SIGKILL)
    code, _, _ = demo.end()
    assert code == -signal.SIGKILL
    assert status_of(tmp_path / "demo", capsys)["steps"] >= 20
