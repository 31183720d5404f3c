"""What the gateway adds to a request: direct calls, plain proxies, the gateway and LiteLLM's proxy in one run."""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from benchmarks.costs import Cost
from benchmarks.endpoint import PostCosts, post_costs
from benchmarks.gateway_figure import draw
from benchmarks.load import send
from benchmarks.peers import litellm
from benchmarks.processes import Server, gateway, pass_through, upstream

DIRECT, BARE, TWICE, KEPT, CALLED, PEER = (
    "upstream", "pass-through", "pass-through-twice", "gateway, drafts kept", "gateway, experts called", "LiteLLM",
)  # fmt: skip
AT_ONCE = (1, 16, 64)
# Requests in flight on a slow upstream, and the seconds that it takes to answer.
MANY, SLOW = 512, 0.5
# The servers take many short turns, so that what else the machine does falls on all of them. LiteLLM is so much slower
# that it gets fewer and shorter turns.
TURNS, PEER_TURNS, PEER_SHARE = 24, 6, 40


def compare(servers: Sequence[Server], requests: int, *, stream: bool, at_once: int) -> Iterator[Cost]:
    """Send requests to every server in turn, several times."""
    times: dict[str, list[float]] = {server.name: [] for server in servers}
    rates: dict[str, list[float]] = {server.name: [] for server in servers}
    cpu: dict[str, float] = {server.name: 0.0 for server in servers}
    for turn in range(TURNS):
        for server in servers:
            share = max(at_once, requests // TURNS)
            if server.name == PEER:
                if turn % (TURNS // PEER_TURNS):
                    continue
                share = max(at_once, requests // PEER_TURNS // PEER_SHARE)
            # A server that was idle during the others' turns is warmed up first.
            send(server.port, max(at_once, share // 10), at_once, stream=stream, key=server.key)
            before = server.cpu()
            load = send(server.port, share, at_once, stream=stream, key=server.key)
            cpu[server.name] += server.cpu() - before
            times[server.name] += load.times
            rates[server.name].append(share / load.seconds)
    for server in servers:
        taken = times[server.name]
        yield Cost(
            server.name, stream, at_once, 1000.0 * statistics.median(taken), statistics.median(rates[server.name]),
            1e6 * cpu[server.name] / len(taken), server.megabytes(),
        )  # fmt: skip


def compared(requests: int, home: Path | None) -> list[Cost]:
    """All servers on one upstream, whole and streamed."""
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        direct = stack.enter_context(upstream())
        base = f"http://127.0.0.1:{direct.port}/v1"
        servers = [direct]
        servers += [stack.enter_context(pass_through(bare, f"{base}/chat/completions")) for bare in (BARE, TWICE)]
        servers.append(stack.enter_context(gateway(KEPT, base, directory, "never")))
        servers.append(stack.enter_context(gateway(CALLED, base, directory, "always")))
        if home is not None:
            servers.append(stack.enter_context(litellm(base, home, directory)))
        places = [(stream, at_once) for stream in (False, True) for at_once in AT_ONCE]
        for stream, at_once in tqdm(places, desc="servers compared", file=sys.stderr):
            costs += compare(servers, requests // (4 if stream else 1), stream=stream, at_once=at_once)
    return costs


def many_in_flight(at_once: int = MANY, seconds: float = SLOW, each: int = 8) -> dict[str, float]:
    """Milliseconds in the median with many requests in flight on a slow upstream, direct and through the gateway."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        direct = stack.enter_context(upstream(UPSTREAM_DELAY=str(seconds)))
        ours = stack.enter_context(gateway(KEPT, f"http://127.0.0.1:{direct.port}/v1", Path(name), "never"))
        medians = {}
        for server in (direct, ours):
            send(server.port, at_once, at_once, stream=False, over=seconds)
            load = send(server.port, each * at_once, at_once, stream=False, over=seconds)
            medians[server.name] = 1000.0 * statistics.median(load.times)
    return {"direct": medians[DIRECT], "gateway": medians[KEPT], "added": medians[KEPT] - medians[DIRECT]}


def memory(requests: int, parts: int = 10) -> list[float]:
    """Megabytes of the gateway at the start and after each part of the requests, half of which are streamed."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        direct = stack.enter_context(upstream())
        ours = stack.enter_context(gateway(KEPT, f"http://127.0.0.1:{direct.port}/v1", Path(name), "portfolio"))
        send(ours.port, 1000, 64, stream=False)
        held = [ours.megabytes()]
        for part in tqdm(range(parts), desc="memory", file=sys.stderr):
            send(ours.port, requests // parts, 64, stream=bool(part % 2))
            held.append(ours.megabytes())
    return held


def goals(
    costs: Sequence[Cost], flight: dict[str, float], held: Sequence[float], post: PostCosts
) -> Iterator[tuple[str, float, float]]:
    """The goals: what is measured, its value, and the largest value allowed."""
    found = {(cost.server, cost.stream, cost.at_once): cost for cost in costs}
    for stream in (False, True):
        for at_once in AT_ONCE:
            kind = f"{'streamed' if stream else 'whole'}, {at_once} at once"
            direct, bare, twice, kept, called = (
                found[name, stream, at_once] for name in (DIRECT, BARE, TWICE, KEPT, CALLED)
            )
            yield f"processor time of a kept draft over a pass-through ({kind})", kept.cpu / bare.cpu, 2.0
            yield (
                f"processor time of an expert's round over two calls passed through ({kind})",
                called.cpu / twice.cpu,
                2.0,
            )
            if (peer := found.get((PEER, stream, at_once))) is not None:
                added = kept.milliseconds - direct.milliseconds
                share = added / (peer.milliseconds - direct.milliseconds)
                yield f"added median latency over LiteLLM's ({kind})", share, 0.1
                yield (
                    f"LiteLLM's requests a second over the gateway's ({kind})",
                    peer.per_second / kept.per_second,
                    0.05,
                )
    yield f"milliseconds added with {MANY} in flight on a {1000 * SLOW:.0f} ms upstream", flight["added"], 25.0
    yield "processor time of a post through the direct endpoint over ClientSession.post", post.ratio, 0.7
    yield "megabytes held", max(held), 120.0
    yield "memory at the end over memory after the first tenth", held[-1] / held[1], 1.1


def main() -> int:
    """Measure, and print the results beside the goals; 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--requests", type=int, default=6000, help="whole answers from each server (default: 6000)")
    add("--memory-requests", type=int, default=200_000, help="requests while memory is measured (default: 200000)")
    add("--litellm", type=Path, metavar="DIR", help="environment of LiteLLM, created if missing (default: none)")
    add("--json", type=Path, metavar="FILE", help="file for all figures, as JSON")
    add("--figure", type=Path, metavar="FILE", help="file for a drawing of the costs (.png or .svg)")
    options = parser.parse_args()
    flight = many_in_flight()
    costs = compared(options.requests, options.litellm)
    held = memory(options.memory_requests)
    post = post_costs()
    for cost in costs:
        kind = "streamed" if cost.stream else "whole"
        print(
            f"{cost.server:24} {kind:8} {cost.at_once:3} at once {cost.milliseconds:9.2f} ms {cost.per_second:8.0f} /s "
            f"{cost.cpu:8.0f} µs of processor {cost.megabytes:7.1f} MB"
        )
    saved = (post.session - post.direct) / next(cost.cpu for cost in costs if cost.server == KEPT)
    print(
        f"a post to a model: {post.direct:.0f} µs of processor through the direct endpoint, {post.session:.0f} µs "
        f"through ClientSession.post; the difference is {100 * saved:.0f}% of a kept draft"
    )
    print("memory in MB:", " ".join(f"{size:.1f}" for size in held))
    missed = 0
    for what, value, most in goals(costs, flight, held, post):
        missed += value > most
        print(f"{'met   ' if value <= most else 'MISSED'} {value:8.3g} of at most {most:<6g} {what}")
    if options.json:
        figures = {
            "costs": [asdict(cost) for cost in costs],
            "in_flight": flight,
            "memory": held,
            "post": post._asdict(),
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.figure:
        draw(costs, options.figure)
    print(f"{missed} goals missed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
