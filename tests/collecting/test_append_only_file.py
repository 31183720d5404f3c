import json
import os
from pathlib import Path
from typing import Any

import pytest

from bpac.collecting.append_only_file import AppendOnlyFile, read_lines, read_settings
from bpac.errors import BpacError, SettingsError, TableError

SETTINGS = {"draft": {"model": "a", "body": {"temperature": 0.5}}, "method": "direct"}


def append_lines(path: Path, lines: int) -> None:
    """Append lines to a file, which is created if it does not exist."""
    with AppendOnlyFile(path, "answers", SETTINGS) as file:
        for number in range(lines):
            file.append({"id": number, "text": "é\n" * number})


def ids(path: Path) -> list[int]:
    """The ids of the lines that are read."""
    return [line["id"] for line in read_lines(path, "answers")]


def test_lines_are_read_in_order(tmp_path: Path) -> None:
    """Lines of several writers are read in the order in which they were appended, and so are the settings."""
    path = tmp_path / "deep" / "a.jsonl"
    append_lines(path, 3)
    append_lines(path, 2)
    assert ids(path) == [0, 1, 2, 0, 1]
    assert read_settings(path, "answers") == SETTINGS


def test_a_file_can_be_cut_off_anywhere(tmp_path: Path) -> None:
    """Wherever a file is cut off, complete lines are kept, and the incomplete one is removed before appending."""
    whole = tmp_path / "whole.jsonl"
    append_lines(whole, 4)
    data = whole.read_bytes()
    for end in range(len(data)):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data[:end])
        complete = max(0, data[:end].count(b"\n") - 1)
        if b"\n" in data[:end]:
            assert ids(path) == list(range(complete))
        with AppendOnlyFile(path, "answers", SETTINGS) as file:
            file.append({"id": 9})
        assert ids(path) == [*range(complete), 9]


def test_a_last_line_of_zeros_is_removed(tmp_path: Path) -> None:
    """A power cut can leave a last line of zeros, which is removed."""
    path = tmp_path / "a.jsonl"
    append_lines(path, 2)
    with path.open("ab") as file:
        file.write(b"\0" * 100 + b"\n")
    assert ids(path) == [0, 1]
    append_lines(path, 1)
    assert ids(path) == [0, 1, 0]


def test_a_long_incomplete_line_is_removed(tmp_path: Path) -> None:
    """An incomplete line that is longer than a block is removed completely."""
    path = tmp_path / "a.jsonl"
    append_lines(path, 1)
    with path.open("ab") as file:
        file.write(b'{"id":1,"text":"' + b"x" * 300_000)
    append_lines(path, 0)
    assert ids(path) == [0]


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    """The error names the damaged line, so that nothing is lost silently."""
    path = tmp_path / "a.jsonl"
    append_lines(path, 2)
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:5]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(TableError, match="line 2 is damaged"):
        ids(path)


def test_a_file_with_other_settings_is_refused(tmp_path: Path) -> None:
    """The error names every setting that differs, and the file is not changed."""
    path = tmp_path / "a.jsonl"
    append_lines(path, 1)
    before = path.read_bytes()
    other: dict[str, Any] = {"draft": {"model": "b", "body": {"temperature": 0.5, "top_k": 20}}, "method": "direct"}
    with pytest.raises(SettingsError) as refused, AppendOnlyFile(path, "answers", other):
        pass
    assert 'draft.model was "a", now "b"' in str(refused.value)
    assert "draft.body.top_k was null, now 20" in str(refused.value)
    assert "temperature" not in str(refused.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text", ["uncertainty,loss\n0.5,1", "{}\n", "x", '{"bpac":"grades","format":1,"settings":{}}\n']
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    """A file that bpac did not write, or of another kind, is refused and not changed."""
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match="not a file of answers"), AppendOnlyFile(path, "answers", SETTINGS):
        pass
    assert path.read_text(encoding="utf-8") == text


def test_a_file_of_a_later_format_is_refused(tmp_path: Path) -> None:
    """The error names the format of the file."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"bpac": "answers", "format": 2, "settings": SETTINGS}) + "\n", encoding="utf-8")
    with pytest.raises(TableError, match="has format 2"):
        ids(path)


def test_only_one_writer_at_a_time(tmp_path: Path) -> None:
    """While one writer has the file open, another is refused; afterwards the file can be opened again."""
    path = tmp_path / "a.jsonl"
    with AppendOnlyFile(path, "answers", SETTINGS) as file:
        with pytest.raises(BpacError, match="being written by another process"):
            append_lines(path, 1)
        file.append({"id": 7})
    append_lines(path, 1)
    assert ids(path) == [7, 0]


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    """After a writer was killed, the file can be opened again, and its lines are there."""
    path = tmp_path / "a.jsonl"
    child = os.fork()
    if child == 0:
        with AppendOnlyFile(path, "answers", SETTINGS) as file:
            file.append({"id": 1})
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    append_lines(path, 1)
    assert ids(path) == [1, 0]


def test_appending_to_a_file_that_is_not_open_is_an_error(tmp_path: Path) -> None:
    """The error says how to open the file."""
    with pytest.raises(BpacError, match="not open"):
        AppendOnlyFile(tmp_path / "a.jsonl", "answers", SETTINGS).append({})
