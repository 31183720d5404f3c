"""The command line: what scripts rely on."""

import csv
import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpac import __version__
from bpac.cli.main import FAMILIES, build_parser, main
from bpac.replay.simulation.laws import PowerLaw
from bpac.replay.tables.reading import read_table
from bpac.routing.policies import POLICIES

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small table with tokens and coins."""
    rng = np.random.default_rng(0)
    uncertainty, loss = PowerLaw(0.5, 1.0).draw(800, rng)
    path = tmp_path / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("uncertainty", "loss", "draft_tokens", "expert_tokens", "expert_correct", "coin"))
        for number, (score, lost) in enumerate(zip(uncertainty, loss, strict=True)):
            writer.writerow((score, lost, 10, 100, number % 2, rng.random()))
    return path


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The one JSON object a command prints; it must print nothing else."""
    assert main([*arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.parametrize("policy", list(POLICIES))
def test_replay_reports_the_promised_keys(capsys: pytest.CaptureFixture[str], table: Path, policy: str) -> None:
    """Every policy can be replayed, and the report has the keys of the contract."""
    report = run_json(capsys, "replay", str(table), "--policy", policy, "--epsilon", "0.1", "--runs", "2")
    assert report["policy"] == policy
    assert (report["epsilon"], report["alpha"], report["runs"], report["steps"]) == (0.1, 0.1, 2, 800)
    for key in ("expert_call_rate", "empirical_risk", "token_ratio", "threshold"):
        assert set(report[key]) == {"mean", "std"}
    assert 0.0 < report["oracle_expert_call_rate"] < 1.0
    assert report["microseconds_per_step"] > 0.0


def test_known_answers(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    """Always thinking costs every call and no risk; never thinking the reverse."""
    always = run_json(capsys, "replay", str(table), "--policy", "always")
    never = run_json(capsys, "replay", str(table), "--policy", "never")
    assert (always["expert_call_rate"]["mean"], always["empirical_risk"]["mean"]) == (1.0, 0.0)
    assert always["token_ratio"]["mean"] == pytest.approx(1.1)
    assert never["expert_call_rate"]["mean"] == 0.0
    assert never["token_ratio"]["mean"] == pytest.approx(0.1)
    assert never["empirical_risk"]["mean"] == pytest.approx(read_table(table).loss.mean())


def test_a_table_without_tokens_has_no_token_ratio(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Unknown is null, not 0."""
    path = tmp_path / "t.jsonl"
    path.write_text('{"uncertainty": 0.5, "loss": 0}\n' * 20, encoding="utf-8")
    assert run_json(capsys, "replay", str(path))["token_ratio"] is None
    assert main(["replay", str(path)]) == 0
    assert "unknown" in capsys.readouterr().out


ABLATIONS = ["two-stage", "two-stage:0.7:0.05:10", "constant:0.2", "gain", "gain:0.5:0.05:0.5"]


@pytest.mark.parametrize("schedule", ABLATIONS)
def test_ablations_can_be_chosen(capsys: pytest.CaptureFixture[str], table: Path, schedule: str) -> None:
    """Schedules and bets of the paper's ablations are options; the bet changes the result."""
    options = ("--exploration", schedule, "--epsilon", "0.15", "--runs", "2")
    run_json(capsys, "replay", str(table), *options)
    rates = {
        run_json(capsys, "replay", str(table), "--policy", "paper", "--bet", bet, *options)["expert_call_rate"]["mean"]
        for bet in ("adaptive", "adaptive:0.5", "fixed:0.01")
    }
    assert len(rates) == 3


def test_the_filter_of_the_paper(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    """``--expert-correct-only`` drops the other rows."""
    assert run_json(capsys, "replay", str(table), "--expert-correct-only")["steps"] == 400


def test_coins_of_the_table_are_used(capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path) -> None:
    """With ``--order given --runs 1`` the coin column is the random source, and the trace shows it."""
    trace = tmp_path / "trace.csv"
    run_json(
        capsys, "replay", str(table), "--order", "given", "--runs", "1", "--epsilon", "0.15", "--trace", str(trace)
    )
    with table.open(encoding="utf-8") as file:
        coins = [float(row["coin"]) for row in csv.DictReader(file)]
    with trace.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["step", "threshold_before", "propensity", "call_expert", "threshold_after"]
    assert len(rows) == 800
    assert any(float(row["propensity"]) < 1.0 for row in rows)
    for row, coin in zip(rows, coins, strict=True):
        assert int(row["call_expert"]) == (coin < float(row["propensity"]))
    for row, following in pairwise(rows):
        assert row["threshold_after"] == following["threshold_before"]


REFERENCES = [("paper", []), ("paper-prior", []), ("portfolio", ["--memory", "revocable"]),
              ("portfolio-latched", ["--memory", "latched"])]  # fmt: skip


@pytest.mark.parametrize("stream", ["binary", "graded"])
@pytest.mark.parametrize(("reference", "options"), REFERENCES)
@pytest.mark.skipif(not (SHARED / "vectors").is_dir(), reason="the shared vectors are not beside the project")
def test_traces_agree_with_the_vectors(tmp_path: Path, stream: str, reference: str, options: list[str]) -> None:
    """The trace file equals the reference trace, step by step."""
    trace, vectors = tmp_path / "trace.csv", SHARED / "vectors"
    policy = reference.removesuffix("-latched")
    main(["replay", str(vectors / f"{stream}.csv"), "--policy", policy, *options, "--epsilon", "0.08",
          "--order", "given", "--runs", "1", "--trace", str(trace)])  # fmt: skip
    with trace.open(encoding="utf-8") as ours, (vectors / f"{stream}.{reference}.csv").open(encoding="utf-8") as theirs:
        pairs = list(zip(csv.DictReader(ours), csv.DictReader(theirs), strict=True))
    assert pairs
    for mine, yours in pairs:
        assert mine.keys() == yours.keys()
        expected = [float(value) for value in yours.values()]
        assert [float(value) for value in mine.values()] == pytest.approx(expected, abs=1e-9)


def test_validate_reports_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """The check of the promise counts violations and bounds their rate."""
    report = run_json(capsys, "validate", "--streams", "20", "--steps", "200", "--delay", "losses:10")
    assert (report["streams"], report["steps"], report["alpha"]) == (20, 200, 0.1)
    assert report["rate"] == report["violations"] / 20
    assert report["rate"] < report["upper_95"] <= 1.0


def test_validate_tells_wrong_from_right(capsys: pytest.CaptureFixture[str]) -> None:
    """The naive method breaks the promise in nearly every stream, the oracle in none."""
    wrong = run_json(capsys, "validate", "--policy", "naive", "--streams", "20", "--steps", "300")
    right = run_json(capsys, "validate", "--policy", "oracle", "--streams", "20", "--steps", "300")
    assert wrong["violations"] >= 18
    assert right["violations"] == 0
    assert main(["validate", "--policy", "budget", "--streams", "5", "--steps", "100", "--crash-every", "30"]) == 0
    assert "the average loss of the served answers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--epsilon", "1"], "epsilon must lie strictly between 0 and 1"),
        (["--alpha", "nan"], "alpha must lie strictly between 0 and 1"),
        (["--policy", "paper", "--memory", "latched"], "memory and assume belong to policy"),
        (["--assume", "any", "--memory", "latched"], 'take "revocable"'),
        (["--delay", "sometimes"], "delay 'sometimes' is none of"),
        (["--runs", "0"], "runs must be at least 1"),
        (["--seed", "-1"], "seed must be at least 0"),
        (["--delay", "independent:"], "delay 'independent:' is none of"),
        (["--figure", "x.foo"], "x.foo: the name of a figure file ends in .png or .svg"),
        (["--figure", "picture"], "picture: the name of a figure file ends in .png or .svg"),
        (["--score", "mood"], "has no column mood"),
        (["--exploration", "often"], "exploration 'often' is not known; give two-stage"),
        (["--exploration", "constant:x"], "exploration 'constant:x' cannot be used"),
        (["--exploration", "constant:0"], "value must lie strictly between 0 and 1"),
        (["--policy", "paper", "--bet", "fixed:1"], "can lose more than"),
        (["--policy", "paper", "--bet", "wild"], "bet 'wild' is not known; give adaptive"),
        (["--policy", "paper", "--bet", "fixed:lots"], "bet 'fixed:lots' cannot be used"),
        (["--bet", "fixed"], "--bet is an option of the policies paper and paper-prior"),
    ],
)
def test_wrong_usage_is_told_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], table: Path, arguments: list[str], said: str
) -> None:
    """Nonsense settings: one line on standard error, nothing on standard output, exit code 2."""
    assert main(["replay", str(table), *arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_a_bad_table_exits_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The one line names file, row, column and value."""
    path = tmp_path / "bad.csv"
    path.write_text("uncertainty,loss\n0.5,0\n1.5,0\n", encoding="utf-8")
    assert main(["replay", str(path)]) == 2
    assert capsys.readouterr().err == f"bpac: {path}: row 2, column uncertainty: '1.5' is not a number in [0, 1]\n"


def test_figures_are_written(capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path) -> None:
    """Pictures of a replay and of the stall, and the numbers behind the last."""
    assert main(["replay", str(table), "--figure", str(tmp_path / "replay.svg")]) == 0
    assert main(["reproduce", "stall", "--out", str(tmp_path / "report")]) == 0
    assert "portfolio" in capsys.readouterr().out
    assert "<svg" in (tmp_path / "replay.svg").read_text(encoding="utf-8")
    written = {path.name for path in (tmp_path / "report").iterdir()}
    assert written == {"stall.csv", "stall.png", "stall.svg", "report.html"}


def test_an_unknown_result_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """``reproduce`` lists what it knows."""
    assert main(["reproduce", "cold-fusion", "--out", str(tmp_path)]) == 2
    assert "stall" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--trace", "--figure", "--html"])
def test_the_table_is_not_overwritten(
    capsys: pytest.CaptureFixture[str], table: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """An output in the place of the input, or of another output, is refused before anything is written."""
    before = table.read_bytes()
    monkeypatch.chdir(table.parent)
    assert main(["replay", str(table), option, table.name]) == 2
    assert (
        capsys.readouterr().err
        == f"bpac: {option} {table.name} would overwrite a file that is read: give another file\n"
    )
    assert table.read_bytes() == before
    assert main(["replay", str(table), "--trace", "x.svg", "--figure", "./x.svg"]) == 2
    assert "--trace and --figure name the same file, x.svg" in capsys.readouterr().err
    assert [path.name for path in table.parent.iterdir()] == [table.name]


def test_outputs_appear_whole_in_directories_that_are_made(table: Path, tmp_path: Path) -> None:
    """Missing directories are made, nothing unfinished is left, and what is no ordinary file stays what it is."""
    (tmp_path / "old.csv").write_text("old", encoding="utf-8")
    (tmp_path / "old.csv").chmod(0o600)
    (tmp_path / "link.csv").symlink_to("old.csv")
    for path in (tmp_path / "new" / "deep" / "trace.csv", tmp_path / "link.csv", Path("/dev/null")):
        assert main(["replay", str(table), "--runs", "1", "--trace", str(path)]) == 0
    assert [path.name for path in (tmp_path / "new" / "deep").iterdir()] == ["trace.csv"]
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "old.csv").read_text(encoding="utf-8").startswith("step,")
    assert (tmp_path / "old.csv").stat().st_mode & 0o777 == 0o600
    assert Path("/dev/null").is_char_device()


def test_reproduce_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One object says where the page and the files are, and what the page's tables say."""
    report = run_json(capsys, "reproduce", "stall", "--out", str(tmp_path))
    assert (report["out"], report["report"]) == (str(tmp_path), str(tmp_path / "report.html"))
    assert {Path(file).name for file in report["files"]} == {"stall.csv", "stall.png", "stall.svg", "report.html"}
    (stall,) = report["results"]
    assert (stall["name"], len(stall["header"])) == ("stall", len(stall["rows"][0]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reproduce", "stall", "--workers", "0"], "workers must be at least 1, or -1 for one per core; got 0"),
        (["reproduce", "stall", "--workers", "-5"], "got -5"),
        (["validate", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["validate", "--delay", "losses:"], "delay 'losses:' is none of"),
    ],
)
def test_bad_numbers_are_told_in_one_line(
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


def test_reproduce_leaves_its_tables_alone(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    """A table that stands where a result would is not overwritten."""
    stall = table.rename(table.with_name("gap-0.05.csv"))
    before = stall.read_bytes()
    assert main(["reproduce", "--tables", str(stall), "--runs", "1", "--out", str(stall.parent)]) == 2
    assert "gap-0.05.csv would overwrite a file that is read" in capsys.readouterr().err
    assert stall.read_bytes() == before
    assert [path.name for path in stall.parent.iterdir()] == [stall.name]


def test_baselines_promise_nothing(capsys: pytest.CaptureFixture[str], table: Path) -> None:
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


def test_a_file_that_cannot_be_written_exits_with_1(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    """A failure that is not the user's usage has exit code 1."""
    assert main(["replay", str(table), "--trace", str(table / "trace.csv")]) == 1
    assert "trace.csv" in capsys.readouterr().err


def test_the_installed_command() -> None:
    """``bpac`` runs as a program and knows its version; no command at all is wrong usage."""
    program = Path(sys.executable).with_name("bpac")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"bpac {__version__}\n"
    assert subprocess.run([program], capture_output=True, check=False).returncode == 2


def test_a_command_imports_only_its_own_module() -> None:
    """What one command needs, even if it is broken or not installed, keeps no other from running."""
    code = (
        f"import sys; from bpac.cli.main import FAMILIES, main; "
        f"main({['validate', '--streams', '1', '--steps', '9']}); "
        "print([name for name in FAMILIES if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['bpac.cli.validate']"


def test_a_module_of_commands_that_needs_more_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the module itself cannot be imported, for its command and for the list of all."""
    (tmp_path / "bpac_more.py").write_text("from bpac.errors import MissingExtra\nraise MissingExtra('it', 'more')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(FAMILIES, "bpac_more", ("more",))
    for arguments in (["more"], ["--help"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err == "bpac: this needs it: install it with  pip install 'bpac[more]'\n"


def test_every_command_is_listed_with_its_module(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of commands says what the modules add, and a misspelt command is answered with all of them."""
    for called, names in [(names[0], names) for names in FAMILIES.values()] + [("reply", sum(FAMILIES.values(), ()))]:
        with pytest.raises(SystemExit, match="2"):
            build_parser(called).parse_args(["reply"])
        assert tuple(re.findall(r"\w+", capsys.readouterr().err.rpartition("choose from")[2])) == names
