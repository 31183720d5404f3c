"""Cost per round: every policy beside a plain transcription of Algorithm 1, in one run.

    python -m benchmarks.cost [--quick]

All figures are ratios within the run: the machine's speed and its other work cancel out.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from tqdm import tqdm

from bpac.replay.metrics import replay_metrics
from bpac.replay.paper.transcription import transcription
from bpac.replay.replay import Replay
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.laws import Law, PowerLaw
from bpac.replay.tables.builtin import builtin_table
from bpac.routing.coins import SeededCoins
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.lock import RouterLock
from bpac.routing.policies import POLICIES, Fixed, Policy, Portfolio
from bpac.routing.router import Router

LAW: Law = PowerLaw(most=0.5, power=1.5)
ROWS = 4628  # the length of the paper's MATH stream
EPSILON, ALPHA = 0.08, 0.1
# What a round cost before scores could be learned, in rounds of the transcription, as this benchmark measured it then.
BEFORE_WITH_TICKET, BEFORE = 0.39, 0.16
# How many times that a round of the gateway may cost with a learned score on, the fits included; and in a long game, a
# round without tickets, compared with one without a learned score.
MOST_FOR_LEARNED = 2.0
# The rounds of a long game, in which most scores retire; how many of them are timed, the last ones; and in how many
# turns, so that whatever else the machine does slows games with and without a learned score alike.
LONG_GAME, LAST, TURNS = 30_000, 6_000, 60
LEARN = LearnedScore(("length", "noise", "finish_reason"))


def policies() -> dict[str, Policy]:
    """Every policy by name, the portfolio once for each memory."""
    named = {name: policy for name, policy in POLICIES.items() if name not in ("portfolio", "oracle")}
    memories: dict[str, Policy] = {
        "portfolio (alarmed)": Portfolio(memory="alarmed"),
        "portfolio (latched)": Portfolio(memory="latched"),
        "portfolio (revocable)": Portfolio(memory="revocable"),
        "portfolio (any stream)": Portfolio(assume="any"),
    }
    return memories | named | {"oracle": Fixed(threshold=0.3, explores=0.05)}


def play(policy: Policy, uncertainties: list[float], losses: list[float], seed: int) -> float:
    """Seconds for a stream through a fresh router."""
    router = Router(EPSILON, ALPHA, policy, coins=SeededCoins(seed))
    decide, observe = router.decide, router.observe
    start = time.perf_counter()
    for uncertainty, loss in zip(uncertainties, losses, strict=True):
        decision = decide(uncertainty)
        if decision.call_expert:
            observe(decision, loss)
    return time.perf_counter() - start


def features_of(losses: list[float], seed: int) -> list[tuple[float, float, str]]:
    """What a score can be learned from: the first feature says much, the others nothing."""
    rng = np.random.default_rng(seed)
    lengths, noise = (rng.random(len(losses)) + np.array(losses)).tolist(), rng.random(len(losses)).tolist()
    return [(length, other, "stop") for length, other in zip(lengths, noise, strict=True)]


def play_long(seed: int) -> tuple[float, float]:
    """Seconds for the last rounds of a long game with the default policy, without and with a learned score."""
    uncertainty, loss = LAW.draw(LONG_GAME, np.random.default_rng(seed))
    us, ls, seconds = uncertainty.tolist(), loss.tolist(), [0.0, 0.0]
    features: list[list[Any]] = [[None] * LONG_GAME, features_of(ls, seed)]
    routers = [Router(EPSILON, ALPHA, Portfolio(learn=learn), coins=SeededCoins(seed)) for learn in (None, LEARN)]
    first = LONG_GAME - LAST
    bounds = [0, *range(first, LONG_GAME + 1, LAST // TURNS)]
    for begin, end in pairwise(bounds):
        for which, (router, known) in enumerate(zip(routers, features, strict=True)):
            start = time.perf_counter()
            for at in range(begin, end):
                decision = router.decide(us[at], features=known[at])
                if decision.call_expert:
                    router.observe(decision, ls[at])
            if begin >= first:
                seconds[which] += time.perf_counter() - start
    return seconds[0], seconds[1]


def play_learned(uncertainties: list[float], losses: list[float], seed: int, *, tickets: bool) -> float:
    """Seconds for a stream with the default policy and a score that is learned from three features.

    Parameters
    ----------
    uncertainties, losses, seed: as for ``play``.
    tickets: whether each query takes a ticket, as in the gateway.
    """
    router = Router(EPSILON, ALPHA, Portfolio(learn=LEARN), coins=SeededCoins(seed))
    decide, observe, arrive = router.decide, router.observe, router.arrive
    features = features_of(losses, seed)
    start = time.perf_counter()
    for uncertainty, loss, known in zip(uncertainties, losses, features, strict=True):
        if tickets:
            decision = decide(uncertainty, ticket=arrive(), features=known)
        else:
            decision = decide(uncertainty, features=known)
        if decision.call_expert:
            observe(decision, loss)
    return time.perf_counter() - start


def play_with_tickets(uncertainties: list[float], losses: list[float], seed: int, *, asks: bool) -> float:
    """Seconds for a stream with the default policy and a ticket for each query, as the gateway does it.

    Parameters
    ----------
    uncertainties, losses, seed: as for ``play``.
    asks: whether to ask, too, if each audit is worth grading.
    """
    router = Router(EPSILON, ALPHA, coins=SeededCoins(seed))
    start = time.perf_counter()
    for uncertainty, loss in zip(uncertainties, losses, strict=True):
        decision = router.decide(uncertainty, ticket=router.arrive())
        if decision.call_expert:
            if asks:
                router.worth_grading(decision)
            router.observe(decision, loss)
    return time.perf_counter() - start


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def cost_per_round(repeats: int) -> int:
    """Print microseconds per decide + observe, the best of several interleaved runs each; how many goals are missed."""
    rng = np.random.default_rng(0)
    uncertainty, loss = LAW.draw(ROWS, rng)
    us, ls, coins = uncertainty.tolist(), loss.tolist(), rng.random(ROWS).tolist()
    tickets = {"with tickets": False, "and worth_grading": True}
    learned = {"learned score": False, "learned, with tickets": True}
    long = ("long game", "long game, learned")
    ratios = []
    best = dict.fromkeys(["transcription", *policies(), *tickets, *learned, *long], np.inf)
    for repeat in tqdm(range(repeats), desc="cost per round", unit="pass", leave=False):
        best["transcription"] = min(best["transcription"], timed(lambda: transcription(us, ls, coins)))
        for name, policy in policies().items():
            best[name] = min(best[name], play(policy, us, ls, repeat))
        for name, asks in tickets.items():
            best[name] = min(best[name], play_with_tickets(us, ls, repeat, asks=asks))
        for name, with_tickets in learned.items():
            best[name] = min(best[name], play_learned(us, ls, repeat, tickets=with_tickets))
        lasted = play_long(repeat)
        ratios.append(lasted[1] / lasted[0])
        for name, taken in zip(long, lasted, strict=True):
            best[name] = min(best[name], taken * ROWS / LAST)
    print(f"{'decide + observe':24}  {'µs per round':>12}  {'times faster':>12}")
    for name, seconds in best.items():
        print(f"{name:24}  {1e6 * seconds / ROWS:12.2f}  {best['transcription'] / seconds:12.1f}")
    return cost_of_learning(best, float(np.median(ratios)))


def cost_of_learning(best: Mapping[str, float], settled: float) -> int:
    """Print what a learned score makes of the cost of a round, its fits included; how many goals are missed.

    Parameters
    ----------
    best: seconds for the stream, by name.
    settled: what it makes of the cost of a round in a long game.
    """
    print("\na round with a learned score, fits included, compared with one without and one before there were any:")
    rounds = {
        "with tickets, as in the gateway": ("learned, with tickets", "with tickets", BEFORE_WITH_TICKET),
        "without tickets": ("learned score", "portfolio (alarmed)", BEFORE),
    }
    for how, (learned, without, before) in rounds.items():
        print(f"  {how}: {best[learned] / best[without]:.2f} and", end=" ")
        print(f"{best[learned] / best['transcription'] / before:.2f} times")
    print(f"  without tickets, the last {LAST:,} of {LONG_GAME:,} rounds: {settled:.2f} times")
    in_gateway = best["learned, with tickets"] / best["transcription"] / BEFORE_WITH_TICKET
    missed = 0
    for goal, times in (("rounds of the gateway, compared with before", in_gateway), ("the long game", settled)):
        missed += times > MOST_FOR_LEARNED
        verdict = "met" if times <= MOST_FOR_LEARNED else "MISSED"
        print(f"  goal for {goal}: at most {MOST_FOR_LEARNED:.0f} times ({verdict})")
    return missed


def take_lock(count: int) -> None:
    """Take and release the lock of a router that often."""
    lock = RouterLock()
    for _ in range(count):
        lock.start()
        try:
            lock.busy = False
        finally:
            lock.release()


def take_nothing(count: int) -> None:
    """The same loop without the lock."""
    for _ in range(count):
        try:
            pass
        finally:
            pass


def cost_of_the_lock(repeats: int) -> None:
    """What safety with several threads costs per round of the default policy: one lock for every call."""
    uncertainty, loss = LAW.draw(ROWS, np.random.default_rng(0))
    router = Router(EPSILON, ALPHA, coins=SeededCoins(0))
    calls, us, ls = ROWS, uncertainty.tolist(), loss.tolist()
    for u, l in zip(us, ls, strict=True):  # noqa: E741
        decision = router.decide(u)
        if decision.call_expert:
            router.observe(decision, l)
            calls += 1
    rounds = taken = empty = np.inf
    for repeat in range(5 * repeats):
        rounds = min(rounds, play(Portfolio(), us, ls, repeat))
        taken = min(taken, timed(lambda: take_lock(calls)))
        empty = min(empty, timed(lambda: take_nothing(calls)))
    locks = taken - empty
    print(f"\nthe lock for threads: {1e6 * locks / ROWS:.2f} µs of {1e6 * rounds / ROWS:.2f} µs per round", end="")
    print(f" with the default policy ({locks / rounds:.1%})")


def replays(runs: int) -> None:
    """Shuffled replays of the table that is shaped like the paper's MATH stream, everything included."""
    table = builtin_table("math-like")
    rng = np.random.default_rng(0)
    replay = Replay(table, RouterFactory(Portfolio(), EPSILON, ALPHA), runs=runs)

    def yardstick() -> None:
        rows = rng.permutation(ROWS)
        transcription(table.uncertainty[rows].tolist(), table.loss[rows].tolist(), rng.random(ROWS).tolist())

    ours = theirs = 0.0
    # Turn by turn, so that whatever else the machine does slows both alike.
    for run in tqdm(range(runs), desc="replays", unit="run", leave=False):
        ours += timed(lambda run=run: replay_metrics(*replay.run(run)))  # type: ignore[misc]
        theirs += timed(yardstick)
    print(f"\n{runs} shuffled replays of {ROWS} rows: portfolio {ours:.2f} s, transcription {theirs:.2f} s", end="")
    print(f" ({theirs / ours:.1f} times faster)")


def flatness(policy: Policy, name: str, rounds: int) -> None:
    """Cost of the rounds around the ten-thousandth and around the last."""
    rng = np.random.default_rng(0)
    router = Router(EPSILON, ALPHA, policy, coins=SeededCoins(0))
    block = 10_000
    costs = []
    for _ in tqdm(range(rounds // block), desc=f"{name}, {rounds:,} rounds", unit="block", leave=False):
        uncertainty, loss = LAW.draw(block, rng)
        us, ls = uncertainty.tolist(), loss.tolist()
        start = time.perf_counter()
        for u, l in zip(us, ls, strict=True):  # noqa: E741
            decision = router.decide(u)
            if decision.call_expert:
                router.observe(decision, l)
        costs.append(1e6 * (time.perf_counter() - start) / block)
    # The first block holds the warm-up; the best of twenty blocks keeps other processes out.
    early, late = min(costs[1:21]), min(costs[-20:])
    print(f"{name:24}  {early:10.2f}  {late:10.2f}  {late / early:6.2f}")


def main() -> int:
    """Measure and print; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and rounds")
    quick = parser.parse_args().quick
    missed = cost_per_round(repeats=3 if quick else 10)
    cost_of_the_lock(repeats=3 if quick else 10)
    replays(runs=20 if quick else 100)
    rounds = 500_000 if quick else 10_000_000
    print(f"\n{'flat: µs per round':24}  {'at 10,000':>10}  {f'at {rounds:,}':>10}   ratio")
    for name in ("portfolio (alarmed)", "portfolio (revocable)", "budget", "paper"):
        flatness(policies()[name], name, rounds)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
