"""``bpac validate`` and ``bpac reproduce``: what scripts rely on."""

from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.replay.validation import streams_needed
from tests.cli.running import run_json


def test_validate_reports_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """The check of the promise counts violations and bounds their rate."""
    report = run_json(capsys, "validate", "--streams", "20", "--steps", "200", "--delay", "losses:10")
    assert (report["streams"], report["steps"], report["alpha"]) == (20, 200, 0.1)
    assert report["rate"] == report["violations"] / 20
    assert report["rate"] < report["upper_95"] <= 1.0


def test_validate_finds_the_naive_method_wrong_and_the_oracle_right(capsys: pytest.CaptureFixture[str]) -> None:
    """The naive method breaks the promise in nearly every stream, the oracle in none."""
    wrong = run_json(capsys, "validate", "--policy", "naive", "--streams", "20", "--steps", "300")
    right = run_json(capsys, "validate", "--policy", "oracle", "--streams", "20", "--steps", "300")
    assert wrong["violations"] >= 18
    assert right["violations"] == 0
    assert main(["validate", "--policy", "budget", "--streams", "5", "--steps", "100", "--crash-every", "30"]) == 0
    assert "the average loss of the served answers" in capsys.readouterr().out


def test_baselines_are_reported_without_a_promise(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    """What is printed of a policy without a promise does not speak of one."""
    short = ["--streams", "2", "--steps", "20"]
    for policy in ("naive", "never", "always", "oracle"):
        assert main(["validate", "--policy", policy, *short]) == 0
        assert main(["replay", str(table), "--policy", policy, "--runs", "1"]) == 0
        out = capsys.readouterr().out
        assert out.count("this policy makes no promise") == 2
        assert "promised" not in out
    assert main(["validate", *short]) == 0
    assert "promised: at most 10.00%" in capsys.readouterr().out


def test_too_few_streams_to_show_the_promise_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """With the number of streams that would do; with that number the line is gone."""
    few = ["validate", "--steps", "20", "--streams"]
    assert main([*few, "20"]) == 0
    assert capsys.readouterr().out.endswith("but more streams are needed to show it: try --streams 120\n")
    assert main([*few, "120"]) == 0
    assert "more streams" not in capsys.readouterr().out
    # Far more than could be run, because the share of violations is all that is allowed.
    assert streams_needed(2, 20, alpha=0.1) is None


def test_an_unknown_result_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """``reproduce`` lists what it knows."""
    assert main(["reproduce", "cold-fusion", "--out", str(tmp_path)]) == 2
    assert "stall" in capsys.readouterr().err


def test_reproduce_reports_its_files_and_tables_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One object says where the page and the files are, and what the page's tables say."""
    report = run_json(capsys, "reproduce", "stall", "--out", str(tmp_path))
    assert (report["out"], report["report"]) == (str(tmp_path), str(tmp_path / "report.html"))
    assert {Path(file).name for file in report["files"]} == {
        "stall.csv",
        "stall.pdf",
        "stall.png",
        "stall.svg",
        "report.html",
    }
    (stall,) = report["results"]
    assert (stall["name"], len(stall["header"])) == ("stall", len(stall["rows"][0]))


def test_replay_and_reproduce_write_their_figures(
    capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path
) -> None:
    """Pictures of a replay and of the stall, and the numbers behind the last."""
    assert main(["replay", str(table), "--figure", str(tmp_path / "replay.svg")]) == 0
    assert main(["reproduce", "stall", "--out", str(tmp_path / "report")]) == 0
    assert "portfolio" in capsys.readouterr().out
    assert "<svg" in (tmp_path / "replay.svg").read_text(encoding="utf-8")
    written = {path.name for path in (tmp_path / "report").iterdir()}
    assert written == {"stall.csv", "stall.pdf", "stall.png", "stall.svg", "report.html"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reproduce", "stall", "--workers", "0"], "workers must be at least 1, or -1 for one per core; got 0"),
        (["reproduce", "stall", "--workers", "-5"], "got -5"),
        (["reproduce", "learned", "--tables", "builtin:bbh-like"], "learned needs tables with columns to learn from"),
        (["reproduce", "segments", "--tables", "builtin:bbh-like"], "segments needs tables with a column category"),
        (["replay", "builtin:bbh-like", "--learn"], "needs a table with columns to learn from, and this one has none"),
        (["validate", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["validate", "--delay", "losses:"], "delay 'losses:' is none of"),
    ],
)
def test_a_bad_number_is_reported_in_one_line_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], said: str
) -> None:
    """No traceback, exit code 2, and nothing is written."""
    out = ["--out", str(tmp_path / "out")] if words[0] == "reproduce" else []
    assert main([*words, *out]) == 2
    error = capsys.readouterr().err
    assert error.startswith("bpac: ")
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_reproduce_never_overwrites_its_tables(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    """A table that stands where a result would is not overwritten."""
    stall = table.rename(table.with_name("gap-0.05.csv"))
    before = stall.read_bytes()
    assert main(["reproduce", "--tables", str(stall), "--runs", "1", "--out", str(stall.parent)]) == 2
    assert "gap-0.05.csv would overwrite a file that is read" in capsys.readouterr().err
    assert stall.read_bytes() == before
    assert [path.name for path in stall.parent.iterdir()] == [stall.name]
