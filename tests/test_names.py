"""One name has one meaning."""

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "bpac"


def test_no_two_classes_share_a_name() -> None:
    """A reader who searches for a class finds one."""
    modules = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    names = Counter(node.name for module in modules for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) > 300
