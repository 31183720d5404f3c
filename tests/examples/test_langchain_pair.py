"""The LangChain example, in a process of its own, against scripted models and a running gateway."""

import os
import subprocess
import sys
from pathlib import Path

from bpac.routing.journal.entries import Resolved
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.deciding.own_route import Client, own
from tests.gateway.running import RunningGateway

PROGRAM = Path(__file__).parents[2] / "examples" / "langchain_pair.py"
# The program twice, with two routes: LangChain is imported once.
TWICE = """
import asyncio, os, runpy, sys
program = runpy.run_path(sys.argv[1])
async def twice():
    for os.environ["ROUTE"] in ("kept", "asked"):
        await program["main"](sys.argv[2:])
asyncio.run(twice())
"""


def model(request: Request) -> Reply:
    """Both models; the draft is wrong about one question."""
    wrong = request.body["model"] == "draft" and "9" in request.question
    return Reply("71" if wrong else "72" if "9" in request.question else "42")


def test_the_example_answers_and_reports() -> None:
    """Kept drafts are printed as they are; where the expert is called, the gateway knows the loss of each draft."""
    config = own()
    config["routes"] = {
        name: {**config["routes"]["own"], "policy": policy} for name, policy in (("kept", "never"), ("asked", "always"))
    }
    with RunningGateway(config) as gateway, ScriptedServer(model) as models:
        variables = {"GATEWAY": gateway.url, "MODELS": models.base_url, "DRAFT": "draft", "EXPERT": "expert"}
        done = subprocess.run(
            [sys.executable, "-c", TWICE, str(PROGRAM), "6 * 7?", "8 * 9?"],
            env=os.environ | variables | {"OPENAI_API_KEY": "none"},
            capture_output=True, text=True, check=False, timeout=120.0,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == ["draft: 42", "draft: 71", "expert: 42", "expert: 72"]
        routes = Client(gateway).status()["routes"]
        assert [(game["steps"], game["owed"], game["forfeits"]) for (game,) in routes.values()] == [(2, 0, {})] * 2
        losses = [
            one.outcome.entry.loss
            for game in gateway.service.live_games()
            for one in gateway.service.store.rounds(game.kept)
            if one.outcome is not None and isinstance(one.outcome.entry, Resolved)
        ]
        assert sorted(loss for loss in losses if loss is not None) == [0.0, 1.0]
