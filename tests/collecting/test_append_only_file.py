import json
import os
from pathlib import Path
from typing import Any

import pytest

from bpac.collecting.append_only_file import AppendOnlyFile, read_lines, read_settings
from bpac.errors import BpacError, SettingsError, TableError

SETTINGS = {"draft": {"model": "a", "body": {"temperature": 0.5}}, "method": "direct"}


def begun(path: Path, lines: int) -> None:
    """A file with some lines."""
    with AppendOnlyFile(path, "answers", SETTINGS) as file:
        for number in range(lines):
            file.append({"id": number, "text": "é\n" * number})


def ids(path: Path) -> list[int]:
    """The lines that can be read."""
    return [line["id"] for line in read_lines(path, "answers")]


def test_lines_come_back(tmp_path: Path) -> None:
    """What was appended is read again, in order, by whoever comes later; so are the settings."""
    path = tmp_path / "deep" / "a.jsonl"
    begun(path, 3)
    begun(path, 2)
    assert ids(path) == [0, 1, 2, 0, 1]
    assert read_settings(path, "answers") == SETTINGS


def test_cut_anywhere(tmp_path: Path) -> None:
    """Wherever a file is cut off, whole lines are kept, the torn one is dropped, and the next is appended cleanly."""
    whole = tmp_path / "whole.jsonl"
    begun(whole, 4)
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


def test_a_power_cut(tmp_path: Path) -> None:
    """A last line of zeros, which is what a power cut leaves, is dropped too."""
    path = tmp_path / "a.jsonl"
    begun(path, 2)
    with path.open("ab") as file:
        file.write(b"\0" * 100 + b"\n")
    assert ids(path) == [0, 1]
    begun(path, 1)
    assert ids(path) == [0, 1, 0]


def test_a_long_last_line(tmp_path: Path) -> None:
    """A torn line of many blocks is dropped as a whole."""
    path = tmp_path / "a.jsonl"
    begun(path, 1)
    with path.open("ab") as file:
        file.write(b'{"id":1,"text":"' + b"x" * 300_000)
    begun(path, 0)
    assert ids(path) == [0]


def test_damage_in_the_middle(tmp_path: Path) -> None:
    """A line that was damaged later is an error that names it: what it held is not silently lost."""
    path = tmp_path / "a.jsonl"
    begun(path, 2)
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1][:5]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(TableError, match="line 2 is damaged"):
        ids(path)


def test_other_settings(tmp_path: Path) -> None:
    """A file that was begun with other settings is refused, all that differs is named, and nothing is changed."""
    path = tmp_path / "a.jsonl"
    begun(path, 1)
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
def test_a_file_of_somebody_else(tmp_path: Path, text: str) -> None:
    """A file that is not ours, or of another kind, is refused and left as it is."""
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match="not a file of answers"), AppendOnlyFile(path, "answers", SETTINGS):
        pass
    assert path.read_text(encoding="utf-8") == text


def test_another_format(tmp_path: Path) -> None:
    """A file of a later version is refused."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"bpac": "answers", "format": 2, "settings": SETTINGS}) + "\n", encoding="utf-8")
    with pytest.raises(TableError, match="has format 2"):
        ids(path)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    """While one has it open, nobody else can; afterwards anybody can."""
    path = tmp_path / "a.jsonl"
    with AppendOnlyFile(path, "answers", SETTINGS) as file:
        with pytest.raises(BpacError, match="being written by another process"):
            begun(path, 1)
        file.append({"id": 7})
    begun(path, 1)
    assert ids(path) == [7, 0]


def test_a_lock_dies_with_its_owner(tmp_path: Path) -> None:
    """A writer that is killed leaves no lock behind, and what it appended is there."""
    path = tmp_path / "a.jsonl"
    child = os.fork()
    if child == 0:
        with AppendOnlyFile(path, "answers", SETTINGS) as file:
            file.append({"id": 1})
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    begun(path, 1)
    assert ids(path) == [1, 0]


def test_not_open(tmp_path: Path) -> None:
    """Nothing can be appended to a file that is not open."""
    with pytest.raises(BpacError, match="not open"):
        AppendOnlyFile(tmp_path / "a.jsonl", "answers", SETTINGS).append({})
