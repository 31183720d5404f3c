"""What is saved if audits are made where the expert is cheap, on the built-in tables (docs/gateway.md).

A day has 400 rounds. In the first third of it a call of the expert costs a share of its usual price. The router is told
nothing (``usual``), what an audit costs, relative to the average of the day (``priced``), or that the expert is busy
outside the cheap hours (``busy``). Costs are those of all expert calls per request, in usual prices.

    python -m benchmarks.cheap_hours
"""

from statistics import fmean
from typing import Literal

from bpac.replay.tables.builtin import BENCHMARKS, builtin_table
from bpac.routing.router import Router

Way = Literal["usual", "priced", "busy"]
DAY, CHEAP = 400, 133


def cost(name: str, epsilon: float, price: float, way: Way, seed: int) -> float:
    """The mean cost of a request."""
    table = builtin_table(name, seed)
    router = Router(epsilon, seed=seed)
    average = 1.0 - (1.0 - price) * CHEAP / DAY
    spent = 0.0
    rounds = zip(table.uncertainty.tolist(), table.loss.tolist(), strict=True)
    # Days begin at another hour in each run.
    for step, (uncertainty, loss) in enumerate(rounds, start=37 * seed):
        cheap = step % DAY < CHEAP
        now = price if cheap else 1.0
        if way == "priced":
            router.expect(audit_price=now / average)
        elif way == "busy":
            router.expect(busy=not cheap)
        decision = router.decide(uncertainty)
        if decision.call_expert:
            spent += now
            router.observe(decision, loss)
    return spent / len(table)


def main(runs: int = 40) -> None:
    """Print the costs."""
    ways: tuple[Way, ...] = ("usual", "priced", "busy")
    for price in (0.5, 0.25):
        for epsilon in (0.05, 0.08):
            costs = {
                way: fmean(cost(name, epsilon, price, way, seed) for name in BENCHMARKS for seed in range(runs))
                for way in ways
            }
            shown = ", ".join(f"{way} {one:.4f} ({one / costs['usual'] - 1.0:+.1%})" for way, one in costs.items())
            print(f"price {price:g}, epsilon {epsilon:g}: {shown}", flush=True)


if __name__ == "__main__":
    main()
