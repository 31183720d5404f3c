"""Logs that lie, break off or repeat themselves: no answer is graded better than it was, and nothing crashes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.replay.tables.reading import read_table
from tests.cli.running import run_json
from tests.importing.test_own_logs import written

ASKED: list[Any] = [{"role": "user", "content": "6 * 7?"}]
WORDS = ("--draft", "small", "--expert", "large", "--map", "uncertainty=score")


def record(model: str, response: dict[str, Any], prompt: Any = ASKED, **more: Any) -> dict[str, Any]:
    """A request and its response in one record."""
    asked = {"model": model, "input" if response.get("object") == "response" else "messages": prompt}
    return {"request": asked, "response": {"model": model, **response}, "score": 0.1, **more}


def chat(text: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion."""
    return {"choices": [{"message": {"content": text, **more}, "finish_reason": finish}]}


def message(text: str, stop: str = "end_turn", **call: Any) -> dict[str, Any]:
    """A message of the Messages API, which calls a tool if there are arguments for it."""
    called = [{"type": "tool_use", "id": "t", "name": "add", "input": call}] if call else []
    usage = {"input_tokens": 7, "output_tokens": 3}
    return {
        "type": "message",
        "content": [{"type": "text", "text": text}, *called],
        "stop_reason": stop,
        "usage": usage,
    }


def response(*items: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    """A response of the Responses API."""
    return {"object": "response", "status": status, "output": list(items)}


def said(*parts: dict[str, Any]) -> dict[str, Any]:
    """An item with a text and further parts."""
    return {"type": "message", "content": [{"type": "output_text", "text": "42"}, *parts]}


def span(reason: str) -> dict[str, Any]:
    """A span whose model calls a tool."""
    part = {"type": "tool_call", "id": "1", "name": "add", "arguments": {"a": 1}}
    output = [{"role": "assistant", "parts": [part], "finish_reason": reason}]
    return {
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "6 * 7?"}]}]),
        "gen_ai.output.messages": json.dumps(output),
        "gen_ai.response.finish_reasons": [reason],
        "score": 0.1,
    }


def traced(model: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """The record of a span."""
    return {"traceId": "t", "spanId": model, "attributes": {"gen_ai.request.model": model, **attributes}}


def losses(tmp_path: Path, capsys: pytest.CaptureFixture[str], *records: dict[str, Any]) -> list[float]:
    """The losses in the table of a log."""
    run_json(capsys, "import", written(tmp_path / "log.jsonl", *records), *WORDS, "--out", str(tmp_path / "t.csv"))
    return list(read_table(tmp_path / "t.csv").loss.tolist())


def custom(text: str) -> dict[str, Any]:
    """A call of a custom tool."""
    return {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": text}


REFUSAL = {"type": "refusal", "refusal": "No."}
# By what the log shows: the two answers, and the loss.
GRADED: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {
    "equal messages": (message("42"), message("42"), 0.0),
    "a message that was cut off": (message("42", "max_tokens"), message("42"), 1.0),
    "a message that was refused": (message("42", "refusal"), message("42"), 1.0),
    "an expert that was cut off": (message("42"), message("42", "max_tokens"), 1.0),
    "a message without blocks that was cut off": ({"content": "42", "stop_reason": "max_tokens"}, chat("42"), 1.0),
    "equal calls in messages": (message("", "tool_use", a=1), message("", "tool_use", a=1.0), 0.0),
    "other calls in messages": (message("42", "tool_use", a=1), message("42", "tool_use", a=2), 1.0),
    "a chat that refuses": (chat("42", refusal="No."), chat("42"), 1.0),
    "a chat without a refusal": (chat("42", refusal=None), chat("42"), 0.0),
    "equal responses": (response(said()), response(said()), 0.0),
    "a response that refuses": (response(said(REFUSAL)), response(said()), 1.0),
    "a response that was cut off": (response(said(), status="incomplete"), response(said()), 1.0),
    "calls of custom tools": (response(said(), custom("a")), response(said(), custom("b")), 1.0),
}


@pytest.mark.parametrize("name", GRADED)
def test_only_equal_answers_have_no_loss(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that was refused or cut off, or that calls another tool, is never graded as equal."""
    draft, expert, loss = GRADED[name]
    assert losses(tmp_path, capsys, record("small", draft), record("large", expert)) == [loss]


@pytest.mark.parametrize(("reason", "loss"), [("tool_call", 0.0), ("tool_calls", 0.0), ("length", 1.0)])
def test_calls_of_spans_may_be_cut_off(
    reason: str, loss: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The conventions have one call per reason; a call that is the first of several may be cut off after it."""
    assert losses(tmp_path, capsys, traced("small", span(reason)), traced("large", span("tool_call"))) == [loss]


def called(arguments: str, result: str) -> list[Any]:
    """A chat in which a tool was called."""
    call = {"id": "c", "type": "function", "function": {"name": "where", "arguments": arguments}}
    return [
        *ASKED,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    ]


def items(arguments: str, result: str) -> list[Any]:
    """The same as the input of the Responses API."""
    call = {"type": "function_call", "call_id": "c", "name": "where", "arguments": arguments}
    return [*ASKED, call, {"type": "function_call_output", "call_id": "c", "output": result}]


def parts(arguments: str, result: str) -> list[Any]:
    """The same as a span has it."""
    call = {"type": "tool_call", "id": "c", "name": "where", "arguments": json.loads(arguments)}
    done = {"type": "tool_call_response", "id": "c", "response": result}
    return [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [done]}]


@pytest.mark.parametrize("kind", ["chat", "responses", "spans"])
@pytest.mark.parametrize("other", [('{"a": 2}', "Paris"), ('{"a": 1}', "London"), ('{"a":1}', "Paris")])
def test_conversations_with_other_tool_calls_are_other_questions(
    kind: str, other: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls and results are part of the question; how arguments are spaced is not."""
    ours = ('{"a": 1}', "Paris")
    if kind == "chat":
        pair = [record("small", chat("42"), called(*ours)), record("large", chat("42"), called(*other))]
    elif kind == "responses":
        pair = [record("small", response(said()), items(*ours)), record("large", response(said()), items(*other))]
    else:
        pair = [
            traced(model, {**span("tool_call"), "gen_ai.input.messages": json.dumps(parts(*of))}) | {"traceId": model}
            for model, of in (("small", ours), ("large", other))
        ]
    words = ["import", written(tmp_path / "log", *pair), *WORDS, "--out", str(tmp_path / "t.csv")]
    assert main(words) == (0 if other[0] == '{"a":1}' else 1)
    capsys.readouterr()


def test_a_call_that_is_logged_twice_is_one_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two logs may have the same calls: each counts once, and the others are counted as left out."""
    calls = [record(model, chat("42") | {"id": f"c-{model}"}) for model in ("small", "large")]
    again = [record(model, chat("42") | {"id": f"d-{model}"}) for model in ("small", "large")]
    log = written(tmp_path / "log.jsonl", *calls, *calls, *again)
    report = run_json(capsys, "import", log, log, *WORDS, "--out", str(tmp_path / "t.csv"))
    assert (report["calls"], report["rows"], sum(report["left_out"].values())) == (12, 2, 8)
    (why,) = report["left_out"]
    assert "the same call before" in why


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (gzip.compress(b'{"score": 0.1, "loss": 0}\n' * 1000)[:-9], "cannot be read"),
        (gzip.compress(b"")[:10] + b"\xff" * 50, "cannot be read"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "row 1 is not JSON"),
        (b"[" + b'{"a":' * 100_000, "row 1 is not JSON"),
        (b'{"a": 1}\n' + b'{"a":' * 100_000, "row 2 is not JSON"),
        ("\ufeffscore;loss\n0.1;0\n".encode(), "separated by commas, not by ';'"),
        (b"score\tloss\n0.1\t0\n", "separated by commas, not by '\\t'"),
        ("score,loss\n0.1,0\n".encode("utf-16"), "cannot be read"),
    ],
    ids=["cut gzip", "broken gzip", "deep document", "deep list", "deep line", "semicolons", "tabs", "UTF-16"],
)
def test_files_that_cannot_be_read_end_the_command(
    data: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the file and what is wrong, and the exit code is 2."""
    (tmp_path / "log").write_bytes(data)
    words = ["import", str(tmp_path / "log"), "--map", "uncertainty=score", "--out", str(tmp_path / "t.csv")]
    assert main(words) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith(f"bpac: {tmp_path / 'log'}: ")
    assert why in last


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        (".jsonl.gz", gzip.compress(b"")[:10] + b"\xff" * 50, "cannot be read"),
        (".jsonl", b'{"a":' * 100_000, "1 is not JSON"),
    ],
    ids=["broken gzip", "deep"],
)
def test_tables_and_questions_that_cannot_be_read(
    name: str, data: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same holds for the tables of a replay and the questions of a collection."""
    file = tmp_path / f"file{name}"
    file.write_bytes(data)
    models = [
        word for role in ("draft", "expert") for word in (f"--{role}-url", "http://127.0.0.1:9", f"--{role}-model", "m")
    ]
    for words in (["replay", str(file)], ["collect", "--questions", str(file), *models, "--out", str(tmp_path / "o")]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"bpac: {file}: ")
        assert why in said


def test_a_stream_without_its_end_was_cut_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Chunks that never say why the model stopped are no whole answer: the loss is 1, though the texts are equal."""
    chunks = [{"choices": [{"index": 0, "delta": {"content": "42"}}]}]
    draft = {"request": {"model": "small", "messages": ASKED}, "response": chunks, "score": 0.1}
    log = written(tmp_path / "log", draft, record("large", chat("42")))
    report = run_json(capsys, "import", log, *WORDS, "--out", str(tmp_path / "t.csv"))
    assert report["rows"] == 1
    assert report["unknown_losses"] == {"an answer was cut off or refused": 1}
    assert read_table(tmp_path / "t.csv").loss.tolist() == [1.0]


@pytest.mark.parametrize(
    ("prompt", "choice"),
    [
        ({}, {"role": "assistant"}),
        ({}, {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "add"}}]}),
    ],
)
def test_calls_without_captured_content_are_not_compared(
    prompt: dict[str, Any], choice: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Events that say only that there was a message, or which tool was called, do not make two answers equal."""
    entries: list[dict[str, Any]] = []
    for span, model in enumerate(("small", "large")):
        ids = {"trace_id": "0x1", "span_id": f"0x{span}a"}
        entries += [
            {"attributes": {"event.name": "gen_ai.user.message"}, "body": prompt, **ids},
            {"attributes": {"event.name": "gen_ai.choice"}, "body": {"index": 0, "message": choice}, **ids},
            {"context": ids, "attributes": {"gen_ai.request.model": model, "score": 0.1}},
        ]
    words = ("--questions-out", str(tmp_path / "q.jsonl"))
    report = run_json(capsys, "import", written(tmp_path / "log", *entries), *WORDS, *words)
    assert (report["calls"], report["rows"]) == (2, 0)
    assert [*report["left_out"].values()] == [2]


def test_messages_without_their_span_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The logs alone name no model: the report says so, and which file is missing."""
    entry = {"attributes": {"event.name": "gen_ai.choice"}, "trace_id": "0x1", "span_id": "0x2"}
    body = {"index": 0, "finish_reason": "stop", "message": {"content": "42"}}
    log = written(tmp_path / "log", entry | {"body": body})
    report = run_json(capsys, "import", log, *WORDS, "--questions-out", str(tmp_path / "q.jsonl"))
    assert report["left_out"] == {"messages without their span, which names the model: give the file of spans, too": 1}
