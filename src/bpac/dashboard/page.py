"""The dashboard's pages: each one file, with its style and its script inside, that asks nobody else for anything.

The script is written as small modules and put together here, so that the gateway and a replay's file carry the same
bytes, and so that the policy in ``CONTENT_SECURITY_POLICY`` can name them by their hashes: nothing else runs.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

# In this order: each module uses only those before it.
MODULES = (
    "dom.js",
    "numbers.js",
    "scales.js",
    "drawing.js",
    "chart.js",
    "time_charts.js",
    "other_charts.js",
    "verdict.js",
    "figures.js",
    "latency.js",
    "what_if.js",
    "events.js",
    "decision_list.js",
    "decision.js",
    "overview.js",
    "lost_journals.js",
    "callers.js",
    "game.js",
    "sources.js",
    "feed.js",
    "main.js",
)
# In this order too: what a smaller window changes comes last.
STYLES = ("colours.css", "frame.css", "verdict.css", "charts.css", "lists.css", "notices.css", "narrow.css")
THEME = "theme.js"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)


def shell(*, sign_out: bool = False) -> str:
    """The live page, which reads ``/dashboard/data`` and the addresses below it.

    Parameters
    ----------
    sign_out: whether to offer to sign out, for those who signed in with a key.
    """
    return _page("shell.html", title="bpac", policy="", document="null", sign_out="" if sign_out else "hidden")


def login(failure: str = "") -> str:
    """The page that asks for a key, whose form posts ``key`` to ``/dashboard/login``.

    Parameters
    ----------
    failure: what was wrong with the key that was just tried; empty if none was.
    """
    hidden, invalid = ("", "true") if failure else ("hidden", "false")
    return _page("login.html", failure=_escaped(failure), failed=hidden, invalid=invalid)


def replay_page(document: Mapping[str, Any]) -> str:
    """A page by itself that shows a document for ever; it opens from a disk and needs no network.

    Parameters
    ----------
    document: what ``/dashboard/data`` would say, with ``live`` false.
    """
    # Inside a script element only "<" can mean anything but itself, and JSON has another way to write it.
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_policy("")}">'
    return _page("shell.html", title=_escaped(str(document["title"])), policy=policy, document=text, sign_out="hidden")


def asset(name: str) -> str:
    """The text of a file that the pages are made of."""
    return (files("bpac.dashboard") / "assets" / name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All modules as one: without imports, and with nothing exported.

    >>> "export " in script()
    False
    """
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", asset(name))) for name in MODULES)


@cache
def style() -> str:
    """All styles as one."""
    return "\n".join(asset(name) for name in STYLES)


def _page(name: str, **parts: str) -> str:
    return Template(asset(name)).substitute(style=style(), theme=asset(THEME), script=script(), **parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _policy(more: str) -> str:
    scripts, styles = f"{_hash(asset(THEME))} {_hash(script())}", _hash(style())
    return f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src data:; base-uri 'none'{more}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# What the gateway sends with its pages: they talk to it and to nobody else, and nobody may frame them.
CONTENT_SECURITY_POLICY = _policy("; connect-src 'self'; form-action 'self'; frame-ancestors 'none'")
