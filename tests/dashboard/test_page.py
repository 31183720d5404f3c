import json
import posixpath
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from bpac.dashboard import page
from bpac.dashboard.document import Subject, game_document, whole_document
from bpac.dashboard.history.history import History
from bpac.routing.router import Router

HOSTILE = '</script><script>alert(1)</script><!-- "\u2028 &amp; <img src=x onerror=alert(1)>'


class Parsed(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the element."""
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        """Leave the element."""
        self._open = ""

    def handle_data(self, data: str) -> None:
        """Remember the text of scripts, styles and titles."""
        if self._open in self.inside:
            self.inside[self._open][-1] += data


def hostile_document() -> dict[str, Any]:
    """A document with names that attack the page."""
    game = game_document(Subject(HOSTILE, HOSTILE), Router(epsilon=0.05, seed=1), History())
    return whole_document([game], title=HOSTILE, live=False, generated=0.0)


PAGES = {
    "live": page.shell(sign_out=True),
    "login": page.login("wrong"),
    "replay": page.replay_page(hostile_document()),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_nothing_else(name: str) -> None:
    """No address in it leads anywhere else: styles and script are inside."""
    parsed = Parsed(PAGES[name])
    for tag, attributes in parsed.elements:
        assert "src" not in attributes, tag
        assert tag != "link" or (attributes["href"] or "").startswith("data:")
    code = "".join((*parsed.inside["style"], page.script(), page.asset(page.THEME)))
    assert set(re.findall(r"https?://[^\s\"'`]+", code)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in code
    assert "url(" not in code.replace("url(#", "")


@pytest.mark.parametrize("name", PAGES)
def test_only_what_was_written_runs(name: str) -> None:
    """The content security policy names every script and style by its hash, and no attribute contains code."""
    parsed = Parsed(PAGES[name])
    for tag, attributes in parsed.elements:
        assert not [key for key in attributes if key.startswith("on") or key == "style"], tag
    scripts = [
        text
        for text, (_, attributes) in zip(
            parsed.inside["script"], [found for found in parsed.elements if found[0] == "script"], strict=True
        )
        if attributes.get("type") != "application/json"
    ]
    policy = page.CONTENT_SECURITY_POLICY
    for text in (*scripts, *parsed.inside["style"]):
        assert page._hash(text) in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")
    if name == "replay":
        (own,) = [found for tag, found in parsed.elements if tag == "meta" and "http-equiv" in found]
        assert all(page._hash(text) in (own["content"] or "") for text in (*scripts, *parsed.inside["style"]))
        assert "connect-src" not in (own["content"] or "")


def test_a_document_cannot_leave_its_place() -> None:
    """Whatever its names are, the document stays inside its element and reads back the same."""
    parsed = Parsed(PAGES["replay"])
    kinds = [attributes.get("type") for tag, attributes in parsed.elements if tag == "script"]
    assert kinds == [None, "application/json", "module"]
    assert json.loads(parsed.inside["script"][1]) == json.loads(json.dumps(hostile_document()))
    assert parsed.inside["title"] == [HOSTILE]


def test_modules_fit_together() -> None:
    """Each name is defined once, and each module imports just what it uses, from modules before it."""
    assets = Path(str(files("bpac.dashboard") / "assets"))
    found = {path.relative_to(assets).as_posix() for path in assets.rglob("*") if path.is_file()}
    assert found == {*page.MODULES, *page.TYPES, page.THEME, *page.STYLES, "shell.html", "login.html"}
    defined: dict[str, str] = {}
    exported: dict[str, set[str]] = {}
    for module in page.MODULES:
        text = page.asset(module)
        for name in re.findall(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", text, flags=re.MULTILINE):
            assert name not in defined, f"{name} is defined in {defined.get(name)} and {module}"
            defined[name] = module
        exported[module] = set(re.findall(r"^export \w+ (\w+)", text, flags=re.MULTILINE))
        body = page._JSDOC.sub("", page._IMPORT.sub("", text))
        assert "import " not in body
        imported: set[str] = set()
        for listed, place in re.findall(r'^import \{([^}]*)\} from "(.*)";$', text, flags=re.MULTILINE):
            names = set(re.findall(r"\w+", listed))
            source = posixpath.normpath(posixpath.join(posixpath.dirname(module), place))
            assert names <= exported[source], f"{module} imports from {source} what it does not have"
            imported |= names
        for name in imported:
            assert re.search(rf"\b{name}\b", body), f"{module} does not use {name}"
        foreign = {name for found in exported.values() for name in found} - imported - set(defined_in(defined, module))
        for name in foreign:
            used = re.search(rf"(?<![.\w\"'`-]){name}\(", body)
            assert not used, f"{module} uses {name} without importing it"
    used_somewhere = page.script()
    for name, module in defined.items():
        assert len(re.findall(rf"\b{name}\b", used_somewhere)) > 1, f"{name} of {module} is never used"


def defined_in(defined: dict[str, str], module: str) -> list[str]:
    """The names that a module defines."""
    return [name for name, place in defined.items() if place == module]


def test_signing_in_and_out() -> None:
    """The button to sign out is there only after signing in; a failed attempt shows an alert."""
    assert re.search(r'action="dashboard/logout" hidden', page.shell())
    assert not re.search(r'action="dashboard/logout" hidden', page.shell(sign_out=True))
    assert re.search(r'role="alert" hidden', page.login())
    assert not re.search(r'role="alert" hidden', page.login("wrong"))
