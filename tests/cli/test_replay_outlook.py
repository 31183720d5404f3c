"""``bpac replay`` says first what it means, and what other policies would have done."""

import io
import re
import sys
from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.replay.outlook import COMPARED, headline, too_short
from bpac.replay.tables.builtin import builtin_table
from bpac.replay.tables.writing import write_columns, write_table
from tests.cli.running import run_json


def told(calls: float, risk: float, tokens: float | None, epsilon: float = 0.05) -> str:
    """The sentence about a replay."""
    ratio = None if tokens is None else {"mean": tokens}
    return headline({"epsilon": epsilon, "expert_call_rate": {"mean": calls}, "empirical_risk": {"mean": risk},
                     "token_ratio": ratio})  # fmt: skip


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((0.4, 0.032, 0.59), "You would save 41 % of tokens at 3.2 % loss (ε = 5 %)"),
        ((0.4, 0.032, None), "You would save 60 % of expert calls (tokens are unknown) at 3.2 % loss (ε = 5 %)"),
        ((1.0, 0.0, 1.1), "You would spend 10 % more tokens than with the expert alone, at 0 % loss (ε = 5 %)"),
        ((1.0, 0.0, None), "You would save nothing (ε = 5 %)"),
        ((0.9, 0.01, 1.0), "You would save nothing at 1 % loss (ε = 5 %)"),
        ((0.0, 0.12, 0.1), "You would save 90 % of tokens at 12 % loss, more than allowed (ε = 5 %)"),
    ],
)
def test_the_sentence_is_honest(values: tuple[float, float, float | None], sentence: str) -> None:
    """Savings, extra cost, no savings and a loss above ε each have words of their own."""
    assert told(*values) == sentence


def test_the_sentence_comes_first_and_policies_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line of the text is the sentence; each other policy has a line, with its need for rounds."""
    assert main(["replay", "builtin:bbh-like", "--runs", "2", "--epsilon", "0.08"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"You would save \d+ % of tokens at [\d.]+ % loss \(ε = 8 %\)$", lines[0])
    for policy in COMPARED[1:]:
        assert any(line.startswith(f"  {policy} ") for line in lines)
    report = run_json(capsys, "replay", "builtin:bbh-like", "--runs", "2", "--epsilon", "0.08", "--compare")
    rows = {row["policy"]: row for row in report["comparison"]}
    assert set(rows) == set(COMPARED) - {"portfolio"}
    assert report["headline"] == lines[0]
    alone = run_json(capsys, "replay", "builtin:bbh-like", "--runs", "2", "--epsilon", "0.08", "--policy", "budget")
    assert alone["comparison"] is None
    assert rows["budget"]["expert_call_rate"] == alone["expert_call_rate"]["mean"]
    assert rows["budget"]["least_rounds"] == alone["least_rounds"]


@pytest.mark.parametrize("policy", ["portfolio", "paper", "budget"])
def test_a_table_that_is_too_short_is_said_to_be(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table without any loss opens a threshold if and only if it is longer than the number that is named."""
    path = tmp_path / "t.csv"
    words = ("--policy", policy, "--runs", "1")
    write_columns({"uncertainty": [0.5] * 10, "loss": [0] * 10}, path)
    short = run_json(capsys, "replay", str(path), *words)
    needed = short["least_rounds"]
    assert f"accepts no draft before {needed} rounds without a single loss" in short["too_short"]
    for rows, opens in ((needed, False), (needed + 60, True)):
        write_columns({"uncertainty": [0.5] * rows, "loss": [0] * rows}, path)
        report = run_json(capsys, "replay", str(path), *words)
        assert (report["too_short"] is None) == opens
        assert (report["expert_call_rate"]["mean"] < 1.0) == opens
    assert too_short(policy, None, 1, 0.05, 0.1) is None


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.csv.gz", "t.jsonl.gz", "t.parquet"])
def test_standard_input_is_read_in_every_format(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``-`` gives the report of the file, and errors speak of standard input."""
    path = tmp_path / name
    write_table(builtin_table("bbh-like", rows=300), path)
    from_file = run_json(capsys, "replay", str(path), "--runs", "2")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    piped = run_json(capsys, "replay", "-", "--runs", "2")
    assert piped["table"] == "standard input"
    for key in ("steps", "expert_call_rate", "empirical_risk", "token_ratio"):
        assert piped[key] == from_file[key]
    write_columns({"uncertainty": [0.5, 2.0], "loss": [0, 0]}, path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert main(["replay", "-"]) == 2
    assert "standard input: row 2, column uncertainty: " in capsys.readouterr().err


def test_the_page_says_which_run_it_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A page is about one run, and the report about all of them: the title and the report say so."""
    page = tmp_path / "page.html"
    words = ["replay", "builtin:bbh-like", "--seed", "7", "--html", str(page)]
    assert main([*words, "--runs", "3"]) == 0
    assert f"{page} shows run 1 of 3" in capsys.readouterr().out
    assert "Replay of builtin:bbh-like: run 1 of 3, rows shuffled, seed 7" in page.read_text(encoding="utf-8")
    assert main([*words, "--runs", "1", "--order", "given"]) == 0
    assert "Replay of builtin:bbh-like: one run, rows given, seed 7" in page.read_text(encoding="utf-8")
