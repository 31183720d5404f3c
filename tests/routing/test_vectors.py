import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpac import Router
from bpac.routing.coins import ListedCoins
from bpac.routing.policies import Policy, named_policy

VECTORS = Path(__file__).parents[2].parent / "shared" / "vectors"
POLICIES: dict[str, Policy] = {
    "paper": named_policy("paper"),
    "paper-prior": named_policy("paper-prior"),
    "portfolio": named_policy("portfolio", memory="revocable"),
    "portfolio-latched": named_policy("portfolio", memory="latched"),
}
pytestmark = pytest.mark.skipif(not VECTORS.is_dir(), reason="the exact traces are not beside the project")


def rows(name: str) -> Iterator[dict[str, float]]:
    """The rows of a trace or a stream, as numbers."""
    with (VECTORS / f"{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            yield {key: float(value) for key, value in row.items()}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("stream", ["binary", "graded"])
def test_every_step_agrees_with_an_independent_implementation(stream: str, policy: str) -> None:
    """Thresholds before and after, propensity and the expert's call are those of the exact trace at every step."""
    queries = list(rows(stream))
    router = Router(0.08, 0.1, POLICIES[policy], coins=ListedCoins([query["coin"] for query in queries]))
    for query, expected in zip(queries, rows(f"{stream}.{policy}"), strict=True):
        assert router.threshold == pytest.approx(expected["threshold_before"], abs=1e-9)
        decision = router.decide(query["uncertainty"])
        assert decision.step == expected["step"]
        assert decision.threshold == pytest.approx(expected["threshold_before"], abs=1e-9)
        assert decision.propensity == pytest.approx(expected["propensity"], abs=1e-9)
        assert decision.call_expert == bool(expected["call_expert"])
        if decision.call_expert:
            router.observe(decision, query["loss"])
        assert router.threshold == pytest.approx(expected["threshold_after"], abs=1e-9)
