"""``bpac replay``: what scripts rely on."""

import csv
from itertools import pairwise
from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.replay.tables.reading import read_table
from bpac.routing.policies import POLICIES
from tests.cli.running import run_json

SHARED = Path(__file__).parents[3] / "shared"


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


def test_always_and_never_cost_what_they_must(capsys: pytest.CaptureFixture[str], table: Path) -> None:
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
def test_schedules_and_bets_of_the_paper_change_the_result(
    capsys: pytest.CaptureFixture[str], table: Path, schedule: str
) -> None:
    """Schedules and bets of the paper's ablations are options; the bet changes the result."""
    options = ("--exploration", schedule, "--epsilon", "0.15", "--runs", "2")
    run_json(capsys, "replay", str(table), *options)
    rates = {
        run_json(capsys, "replay", str(table), "--policy", "paper", "--bet", bet, *options)["expert_call_rate"]["mean"]
        for bet in ("adaptive", "adaptive:0.5", "fixed:0.01")
    }
    assert len(rates) == 3


def test_expert_correct_only_drops_the_rows_that_the_expert_gets_wrong(
    capsys: pytest.CaptureFixture[str], table: Path
) -> None:
    """``--expert-correct-only`` drops the other rows."""
    assert run_json(capsys, "replay", str(table), "--expert-correct-only")["steps"] == 400


def test_with_one_run_in_the_given_order_the_coin_column_is_the_random_source(
    capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path
) -> None:
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
def test_traces_equal_the_reference_traces(tmp_path: Path, stream: str, reference: str, options: list[str]) -> None:
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--epsilon", "1"], "epsilon must lie strictly between 0 and 1"),
        (["--alpha", "nan"], "alpha must lie strictly between 0 and 1"),
        (["--policy", "paper", "--memory", "latched"], "memory and assume belong to policy"),
        (["--assume", "any", "--memory", "latched"], 'use "revocable"'),
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
def test_a_wrong_setting_is_reported_in_one_line_with_exit_code_2(
    capsys: pytest.CaptureFixture[str], table: Path, arguments: list[str], said: str
) -> None:
    """Nonsense settings: one line on standard error, nothing on standard output, exit code 2."""
    assert main(["replay", str(table), *arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_a_bad_table_is_reported_in_one_line_that_names_row_and_column(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The one line names file, row, column and value."""
    path = tmp_path / "bad.csv"
    path.write_text("uncertainty,loss\n0.5,0\n1.5,0\n", encoding="utf-8")
    assert main(["replay", str(path)]) == 2
    assert capsys.readouterr().err == f"bpac: {path}: row 2, column uncertainty: '1.5' is not a number in [0, 1]\n"


@pytest.mark.parametrize("option", ["--trace", "--figure", "--html"])
def test_an_output_never_overwrites_the_table_or_another_output(
    capsys: pytest.CaptureFixture[str], table: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """An output in the place of the input, or of another output, is refused before anything is written."""
    before = table.read_bytes()
    monkeypatch.chdir(table.parent)
    assert main(["replay", str(table), option, table.name]) == 2
    refused = f"bpac: {option} {table.name} would overwrite a file that is read: give another file\n"
    assert capsys.readouterr().err == refused
    assert table.read_bytes() == before
    assert main(["replay", str(table), "--trace", "x.svg", "--figure", "./x.svg"]) == 2
    assert "--trace and --figure name the same file, x.svg" in capsys.readouterr().err
    assert [path.name for path in table.parent.iterdir()] == [table.name]


def test_missing_directories_of_outputs_are_made(table: Path, tmp_path: Path) -> None:
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


def test_a_file_that_cannot_be_written_exits_with_1(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    """A failure that is not the user's usage has exit code 1."""
    assert main(["replay", str(table), "--trace", str(table / "trace.csv")]) == 1
    assert "trace.csv" in capsys.readouterr().err
