"""A first look: a made-up stream through the default policy, the paper's and the oracle's."""

from pathlib import Path

import numpy as np

from bpac.replay.figures import draw_replays, save
from bpac.replay.laws import PowerLaw
from bpac.replay.records import Table
from bpac.replay.replay import Replay, Run, metrics, oracle_policy
from bpac.replay.start import Start
from bpac.routing.policies import POLICIES

# Drafts are mostly right while they are sure, and wrong in a fifth of all cases.
LAW = PowerLaw(most=0.6, power=2.0)
STEPS = 10_000
EPSILON, ALPHA = 0.05, 0.1


def demo_table(steps: int = STEPS, seed: int = 1) -> Table:
    """A stream of that law, with tokens in the proportions people meet."""
    rng = np.random.default_rng(seed)
    uncertainty, loss = LAW.draw(steps, rng)
    return Table(
        uncertainty, loss, draft_tokens=rng.lognormal(5.0, 0.5, steps), expert_tokens=rng.lognormal(7.5, 0.6, steps)
    )


def run_demo(picture: Path) -> dict[str, Run]:
    """Replay the stream with three policies, draw the picture, and return what came of each."""
    table = demo_table()
    policies = {
        "paper": POLICIES["paper"],
        "portfolio": POLICIES["portfolio"],
        "oracle": oracle_policy(table, EPSILON),
    }
    paths = {}
    for name, policy in policies.items():
        replay = Replay(table, Start(policy, EPSILON, ALPHA), order="given")
        paths[name] = replay.one(0, trace=True)
    save(draw_replays(paths, EPSILON, f"{STEPS:,} questions, ε = {EPSILON:g}, α = {ALPHA:g}"), picture)
    return {name: metrics(*path) for name, path in paths.items()}
