"""The pages of the dashboard: each is one HTML file that contains its styles and its script and loads nothing else.

The script is written as small modules, which are joined here: the gateway and the page of a replay contain the same
bytes, and ``CONTENT_SECURITY_POLICY`` allows exactly these scripts and styles by their hashes.
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

# Joined in this order: each module imports only from those before it.
MODULES = (
    "dom.js",
    "numbers.js",
    "score_in_force.js",
    "sources.js",
    "polling.js",
    "charts/scales.js",
    "charts/drawing.js",
    "charts/chart.js",
    "charts/series_axis.js",
    "charts/time_charts.js",
    "charts/score_charts.js",
    "charts/what_if.js",
    "panels/game_name.js",
    "panels/tile.js",
    "panels/savings.js",
    "panels/figures.js",
    "panels/verdict.js",
    "panels/switch.js",
    "panels/routes.js",
    "panels/cascade.js",
    "panels/latency.js",
    "panels/events.js",
    "panels/axis_choice.js",
    "panels/decision_list.js",
    "panels/lost_journals.js",
    "panels/troubles.js",
    "panels/models.js",
    "panels/replicas.js",
    "panels/refused_callers.js",
    "views/overview.js",
    "views/game.js",
    "views/decision.js",
    "main.js",
)
# Modules that hold only types, for the type checker: the page does without them.
TYPES = ("types.js", "charts/specs.js")
# Rules for smaller windows override the others, so they come last.
STYLES = (
    "styles/colours.css",
    "styles/frame.css",
    "styles/verdict.css",
    "styles/tiles.css",
    "styles/charts.css",
    "styles/tables.css",
    "styles/lists.css",
    "styles/notices.css",
    "styles/narrow.css",
)
THEME = "theme.js"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\.{1,2}/[\w/]+\.js";\n', re.MULTILINE)
# Types and their descriptions are for the type checker and the reader of the modules.
_JSDOC = re.compile(r"[ \t]*/\*\*.*?\*/[ \t]*\n?", re.DOTALL)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)


def shell(*, sign_out: bool = False) -> str:
    """The page of a gateway, which loads ``/dashboard/data`` and ``/dashboard/decisions``.

    Parameters
    ----------
    sign_out: whether to show the button that signs out.
    """
    return _page("shell.html", title="bpac", policy="", document="null", sign_out="" if sign_out else "hidden")


def login(failure: str = "", *, action: str = "dashboard/login") -> str:
    """The sign-in page, whose form posts ``key``.

    Parameters
    ----------
    failure: why the last attempt failed (default: empty, no attempt yet).
    action: where the form is sent, relative to the address of the page (default: from ``/dashboard``).
    """
    hidden, invalid = ("", "true") if failure else ("hidden", "false")
    return _page("login.html", action=action, failure=_escaped(failure), failed=hidden, invalid=invalid)


def replay_page(document: Mapping[str, Any]) -> str:
    """A page with its document inside, which opens from a disk and needs no network.

    Parameters
    ----------
    document: as from ``/dashboard/data``, with ``live`` false.
    """
    # Inside a script element, "<" is the only character with a meaning of its own; JSON can write it as an escape.
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_policy("")}">'
    return _page("shell.html", title=_escaped(str(document["title"])), policy=policy, document=text, sign_out="hidden")


def asset(name: str) -> str:
    """The text of a file in ``assets``."""
    return (files("bpac.dashboard") / "assets" / name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All modules joined into one script, without imports, exports and types.

    >>> "export " in script()
    False
    """
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", _JSDOC.sub("", asset(name)))) for name in MODULES)


@cache
def style() -> str:
    """All styles joined."""
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


# Sent by the gateway with its pages: they may connect to the gateway only, and no other site may frame them.
CONTENT_SECURITY_POLICY = _policy("; connect-src 'self'; form-action 'self'; frame-ancestors 'none'")
