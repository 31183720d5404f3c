"""The scripts of the page are checked against the types of the document, and these against real documents."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bpac.dashboard import page
from bpac.dashboard.decisions import DecisionView
from bpac.dashboard.document import Subject, game_document, whole_document
from bpac.dashboard.lost_journals import lost_journals
from bpac.dashboard.troubles import Trouble
from bpac.replay.simulation.laws import PowerLaw
from bpac.stores.store import Game, LostEntries
from bpac.testing import Reply
from tests.dashboard.played import audit, played
from tests.dashboard.traffic import get
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, pair

ROOT = Path(__file__).parents[2]
TSC = ROOT / "node_modules" / "typescript" / "bin" / "tsc"


def declared(name: str) -> set[str]:
    """The fields of a type in ``types.js``."""
    block = next(block for block in page.asset("types.js").split("/**") if f"@typedef {{object}} {name}\n" in block)
    return set(re.findall(r"@property \{.*\} \[?(\w+)\]?", block))


def test_the_types_have_the_fields_of_a_game() -> None:
    """Each field of a game and of its parts is declared, and no other."""
    router, history = played(PowerLaw(most=0.5, power=1.0), 700)
    stage = dict.fromkeys(("stage", "count", "mean", "p50", "p90", "p99"), 1)
    game = game_document(Subject("homework", latency=[stage]), router, history)
    parts = {
        "Alarm": game["alarm"],
        "Certificate": game["certificate"],
        "GameEvent": game["events"][0],
        "Histogram": game["uncertainty"],
        "Stage": game["latency"][0],
        "Unscored": game["unscored"],
        "VerdictText": game["verdict"],
        "WealthCurve": game["wealth"],
        "WhatIfRow": game["what_if"][0],
    }
    for name, part in parts.items():
        assert declared(name) == part.keys(), name
    assert declared("Game") == game.keys() | {"served_loss"}
    assert declared("Series") == game["series"].keys() | {"served_loss"}
    decision = DecisionView(audit(1, 0.5)).document("dec-1-1-x", 1, "homework", "")
    assert declared("Decision") == decision.keys() | {"stage"}  # of a cascade only
    lost: Any = lost_journals([LostEntries(1, 7, 12, "")], [Game(1, "homework", "", "terms")], [])
    assert declared("LostJournals") == lost.keys()
    assert declared("LostJournal") == lost["journals"][0].keys()


def test_the_types_have_the_fields_of_a_gateways_document() -> None:
    """Also those that only the gateway adds: savings, refused callers and pages of decisions."""
    with Running(pair(Reply("41"), Reply("42")), model={"price": 2.0}) as (gateway, _):
        post(gateway.url, ASK)
        post(gateway.url, b"", "/v1/status", method="GET", headers={"Host": "evil.example"})
        gateway.idle()
        document, decisions = get(gateway, "/data").json, get(gateway, "/decisions?game=1").json
    assert document.keys() >= whole_document([], title="", live=True, generated=0.0).keys()
    assert declared("DashboardDocument") == document.keys() | {"decisions"}
    (game,) = document["games"]
    assert declared("Game") == game.keys() | {"served_loss"}
    assert declared("Savings") == game["savings"].keys() | {"followed"}
    assert declared("Callers") == document["callers"].keys()
    assert declared("RefusedReason") == document["callers"]["refused"][0].keys()
    assert declared("DecisionPage") == decisions.keys()
    assert declared("Trouble") == Trouble("", None, 1, "").to_json().keys()
    assert declared("Health") == document["models"]["small"]["health"].keys()


def node() -> str | None:
    """The path of Node.js: from the environment of the tests, or the system's."""
    return shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")


def checked(directory: Path) -> str:
    """What the type checker reports about a copy of the scripts; empty if nothing."""
    command = [str(node()), str(TSC), "--project", str(directory), "--pretty", "false"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


# A module, a part of it, a mistake in its place, and what the type checker says about it.
MISTAKES = {
    "misspelled": (
        "charts/score_charts.js",
        "game.threshold === 0",
        "game.treshold === 0",
        "Property 'treshold' does not exist",
    ),
    "wrong type": (
        "panels/verdict.js",
        "setText(this.detail, keepUnits(detail))",
        "setText(this.detail, 1)",
        "not assignable",
    ),
    "null not checked": (
        "panels/figures.js",
        "if (!alarm) return;",
        "",
        "does not exist on type 'Alarm | null'",
    ),
    "undefined for null": (
        "views/decision.js",
        "decision.loss !== null",
        "decision.loss !== undefined",
        "not assignable",
    ),
}


@pytest.mark.skipif(not TSC.exists() or node() is None, reason="make lint installs the type checker")
def test_the_type_checker_refuses_mistakes(tmp_path: Path) -> None:
    """It accepts the scripts as they are, and none of these changes; all at once, because each run takes seconds."""
    assets = tmp_path / "src/bpac/dashboard/assets"
    shutil.copytree(ROOT / "src/bpac/dashboard/assets", assets)
    shutil.copy(ROOT / "tsconfig.json", tmp_path)
    assert checked(tmp_path) == ""
    for module, right, wrong, _ in MISTAKES.values():
        text = (assets / module).read_text(encoding="utf-8")
        assert right in text
        (assets / module).write_text(text.replace(right, wrong), encoding="utf-8")
    found = checked(tmp_path).splitlines()
    for kind, (module, _, _, error) in MISTAKES.items():
        assert any(module in line and error in line for line in found), kind
    modules = {module for module, *_ in MISTAKES.values()}
    assert all(any(module in line for module in modules) for line in found if "error TS" in line)
