"""Every format gives the same table."""

import csv
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from bpac.cli.program import main
from bpac.replay.tables.reading import read_table
from tests.cli.running import run_json
from tests.importing import logs
from tests.importing.logs import LARGE, QUESTIONS, SMALL, WRONG

CONFIDENCE = {"langfuse": "metadata.confidence", "opentelemetry": "app.confidence"}


def lines(records: list[dict[str, Any]]) -> str:
    """JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def table(records: list[dict[str, Any]]) -> str:
    """CSV."""
    file = io.StringIO()
    writer = csv.DictWriter(file, records[0].keys())
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()


def pages(records: list[dict[str, Any]]) -> str:
    """A page of an API, indented."""
    return json.dumps({"data": records, "meta": {"page": 1}}, indent=1)


def both(make: Any, **options: Any) -> list[dict[str, Any]]:
    """The calls of both models, the expert's first."""
    return [*make(LARGE, **options), *make(SMALL, **options)]


def trace_page(records: list[dict[str, Any]]) -> str:
    """Traces with their observations, as Langfuse's page of a trace saves them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault(record.pop("traceId"), []).append(record)
    return json.dumps([{"id": trace, "name": "x", "observations": seen} for trace, seen in found.items()])


FILES = {
    "openai": ("openai", lines(both(logs.openai))),
    "openai, a list": ("openai", json.dumps(both(logs.openai), indent=2)),
    "openai, chunks": ("openai", lines(both(logs.streamed))),
    "openai, events": ("openai", lines(both(logs.streamed, as_text=True))),
    "openai, documents": ("openai", "".join(json.dumps(one, indent=4) + "\n" for one in both(logs.openai))),
    "openai batch": ("openai", lines([*logs.batch_input(SMALL), *both(logs.batch_output), *logs.batch_input(LARGE)])),
    "litellm": ("litellm", lines(both(logs.litellm))),
    "litellm, pages": ("litellm", pages(both(logs.litellm))),
    "litellm, database": ("litellm", table(both(logs.litellm, as_text=True))),
    "langfuse": ("langfuse", json.dumps(both(logs.langfuse))),
    "langfuse, pages": ("langfuse", pages(both(logs.langfuse))),
    "langfuse, bucket": ("langfuse", table(both(logs.langfuse, snake=True))),
    "langfuse, traces": ("langfuse", trace_page(both(logs.langfuse))),
    "opentelemetry": ("opentelemetry", lines(both(logs.opentelemetry, generation="attributes"))),
    "opentelemetry, events": ("opentelemetry", lines(both(logs.opentelemetry, generation="events"))),
    "opentelemetry, logs": ("opentelemetry", lines(both(logs.opentelemetry, generation="logs"))),
    "opentelemetry, numbered": ("opentelemetry", json.dumps(logs.opentelemetry(LARGE, "numbered")[0], indent=1) + "\n"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_table(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs, losses, tokens and scores are the same, whoever wrote the log; compressed or not, by content alone."""
    kind, content = FILES[name]
    log, more = tmp_path / "log", tmp_path / "more.jsonl"
    log.write_bytes(gzip.compress(content.encode()) if name.startswith("litellm") else content.encode())
    files = [str(log)]
    if name.endswith("numbered"):  # one document per model
        more.write_text(lines(logs.opentelemetry(SMALL, "numbered")), encoding="utf-8")
        files.append(str(more))
    mapped = ["--map", f"confidence={CONFIDENCE[kind]}"] if kind in CONFIDENCE else []
    report = run_json(capsys, "import", *files, *mapped, "--out", str(tmp_path / "t.csv"))
    assert set(report["formats"].values()) == {kind}
    # Spans of an agent are no calls of a model, and are counted as that.
    others = {"not a chat (invoke_agent)": 2} if kind == "opentelemetry" else {}
    assert (report["rows"], report["left_out"], report["unpaired"]) == (QUESTIONS, others, {})
    assert SMALL in report["draft"]
    assert LARGE in report["expert"]
    assert report["guessed"]
    made = read_table(tmp_path / "t.csv")
    assert made.draft_tokens is not None
    assert made.expert_tokens is not None
    assert sorted(zip(made.uncertainty.round(6).tolist(), made.loss.tolist(), strict=True)) == sorted(
        (round(1 - logs.probability(number), 6), float(number in WRONG)) for number in range(QUESTIONS)
    )
    assert set(made.draft_tokens.tolist()) == {1.0}
    assert set(made.expert_tokens.tolist()) == {40.0}


def test_parquet_is_read_as_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log in Parquet, with records or with JSON in its cells, gives the same table as JSON lines."""
    records = both(logs.openai)
    cells = [{name: json.dumps(value) for name, value in record.items()} for record in records]
    (tmp_path / "log.jsonl").write_text(lines(records), encoding="utf-8")
    tables = []
    for name, rows in (("records.parquet", records), ("cells.parquet", cells)):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / name)
    for name in ("log.jsonl", "records.parquet", "cells.parquet"):
        report = run_json(capsys, "import", str(tmp_path / name), "--out", str(tmp_path / "t.csv"))
        assert (set(report["formats"].values()), report["rows"]) == ({"openai"}, QUESTIONS)
        tables.append((tmp_path / "t.csv").read_text(encoding="utf-8"))
    assert tables[0] == tables[1] == tables[2]
    (tmp_path / "log.jsonl").write_bytes((tmp_path / "cells.parquet").read_bytes()[:200])
    assert main(["import", str(tmp_path / "log.jsonl"), "--out", str(tmp_path / "u.csv")]) == 2
    assert "log.jsonl: cannot be read as Parquet" in capsys.readouterr().err


def test_standard_input_and_several_files_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``-`` is standard input, also beside a file of another format."""
    (tmp_path / "large.json").write_text(json.dumps(logs.langfuse(LARGE)), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(logs.openai(SMALL)).encode())))
    files = ["-", str(tmp_path / "large.json")]
    report = run_json(capsys, "import", *files, "--out", str(tmp_path / "t.jsonl"))
    assert report["formats"] == {"standard input": "openai", files[1]: "langfuse"}
    assert (report["rows"], report["score"]) == (QUESTIONS, "mean_token_probability")


ROWS = [
    (["conf", "wrong"], ["uncertainty=conf", "loss=wrong"], [(0.1, 0), (0.6, 1)]),
    (["sure", "bad"], ["confidence=sure", "loss=bad"], [(0.9, 0), (0.4, 1)]),
    (["u", "ok", "best"], ["uncertainty=u", "draft_correct=ok", "expert_correct=best"], [(0.1, 1, 1), (0.6, 0, 1)]),
    (["u", "a", "b"], ["uncertainty=u", "draft=a", "expert=b"], [(0.1, "42", "42"), (0.6, "41", "42")]),
    (["u", "a", "b", "t"], ["uncertainty=u", "draft=a", "expert=b", "reference=t"],
     [(0.1, "41", "42", "41"), (0.6, "41", "42", "42")]),
    (["lp", "a", "b"], ["logprobs=lp", "draft=a", "expert=b"], [("[-0.105361]", "7", "7"), ("[-0.916291]", "6", "7")]),
]  # fmt: skip


@pytest.mark.parametrize(("header", "mapped", "rows"), ROWS)
def test_columns_may_have_any_names(
    header: list[str], mapped: list[str], rows: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--map`` says which column is which: a score or a confidence, a loss, verdicts, or both answers."""
    log = tmp_path / "log.csv"
    log.write_text("\n".join(",".join(map(str, row)) for row in (header, *rows)) + "\n", encoding="utf-8")
    options = [word for one in mapped for word in ("--map", one)]
    run_json(capsys, "import", str(log), *options, "--out", str(tmp_path / "t.csv"))
    made = read_table(tmp_path / "t.csv")
    assert made.uncertainty.tolist() == pytest.approx([0.1, 0.6], abs=1e-5)
    assert made.loss.tolist() == [0.0, 1.0]


BAD = [
    ("conf,wrong\n0.5,0\nNaN,1\n", "log.csv: row 2, column uncertainty: 'NaN' is not a number in [0, 1]"),
    ("conf,wrong\n1.5,0\n", "log.csv: row 1, column uncertainty: '1.5' is not a number in [0, 1]"),
    ("conf,wrong\n0.5,maybe\n", "log.csv: row 1, column loss: 'maybe' is not a number in [0, 1]"),
    ("conf,wrong\n0.5,0,7\n", "log.csv: row 1 has 3 cells, but the header names 2 columns"),
    ('{"conf": 0.5, "wrong": 0}\n{"conf": 0.5,\n', "log.csv: row 2 is not JSON"),
    ('[{"conf": 0.5, "wrong": 0}, {"conf": 0.5, ]', "log.csv: row 2 is not JSON"),
    ('[{"conf": 0.5, "wrong": 0}', "log.csv: row 1 is not JSON (the list has no end)"),
    ("[1]", "log.csv: row 1 must be a JSON object, got '1'"),
]


@pytest.mark.parametrize(("content", "said"), BAD)
def test_a_bad_value_is_an_error_that_names_its_place(
    content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, row, column and value are named, the exit code is 2, and no table is written."""
    (tmp_path / "log.csv").write_text(content, encoding="utf-8")
    words = ["--map", "uncertainty=conf", "--map", "loss=wrong", "--out", str(tmp_path / "t.csv")]
    assert main(["import", str(tmp_path / "log.csv"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--map", "colour=red"], "--map colour=red: give NAME=COLUMN with NAME one of uncertainty"),
        (["--map", "loss=a", "--map", "loss=b"], "--map loss=… is given twice"),
        (
            ["--draft", "medium"],
            "--draft medium: the log has no answer of it; it has those of small-1 (10), large",
        ),
        (["-", "-"], "standard input (-) can be read once"),
        (["--questions-out", "q.csv"], "the name must end in .jsonl"),
    ],
)
def test_wrong_options_say_what_is_wrong(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong option is an error before anything is written."""
    (tmp_path / "log").write_text(lines([*logs.openai(SMALL), *logs.openai(LARGE)]), encoding="utf-8")
    assert main(["import", str(tmp_path / "log"), *words, "--out", str(tmp_path / "t.csv")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "t.csv").exists()
