import signal
from pathlib import Path

import pytest

from bpac.demo.client import CONCURRENCY
from tests.demo.running import RunningDemo, json_of, status_of


def test_ctrl_c_ends_a_demo_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, a report of the questions so far, and no process left; with ``--once`` the exit code is 130."""
    demo = RunningDemo(tmp_path)
    demo.signal(signal.SIGINT)
    code, output, _ = demo.end()
    report = json_of(output)
    assert code == 0
    assert report["game"] == status_of(tmp_path, capsys)
    assert report["game"]["owed"] == 0
    assert (report["complete"], report["truth"]) == (False, None)
    assert Path(report["picture"]).read_bytes().startswith(b"\x89PNG")
    # Again in the same directory, now with --once: it replaces the files, and stopping it early is not a success.
    demo = RunningDemo(tmp_path, "--once")
    demo.signal(signal.SIGTERM)
    code, output, _ = demo.end()
    again = json_of(output)
    assert code == 130
    assert again["game"] == status_of(tmp_path, capsys)
    # Every round belongs to a question that was answered, or was in flight when the demo was stopped.
    for one in (report, again):
        assert 0 <= one["game"]["steps"] - one["questions"] <= CONCURRENCY < 20 <= one["game"]["steps"]


def test_a_crashed_gateway_ends_the_demo_with_an_error(tmp_path: Path) -> None:
    """Exit code 1, and a line that says what happened and where the log is."""
    demo = RunningDemo(tmp_path / "demo")
    (gateway,) = demo.family
    gateway.kill()
    code, output, errors = demo.end()
    assert (code, output) == (1, "")
    last = errors.splitlines()[-1]
    assert last.startswith("bpac: the gateway or a model failed")
    assert "exit code -9" in last
    assert str(tmp_path / "demo" / "gateway.log") in last


def test_a_killed_demo_leaves_no_gateway_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The gateway of a demo that was killed ends too, and its journal is complete."""
    demo = RunningDemo(tmp_path / "demo")
    demo.signal(signal.SIGKILL)
    code, _, _ = demo.end()
    assert code == -signal.SIGKILL
    assert status_of(tmp_path / "demo", capsys)["steps"] >= 20
