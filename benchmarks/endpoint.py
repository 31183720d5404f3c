"""What the direct endpoint saves: posts through it beside posts through aiohttp's public ``ClientSession.post``.

    python -m benchmarks.endpoint

docs/decisions/0006-connections-without-a-session.md says what follows from it.
"""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import aiohttp
import uvloop

from benchmarks.processes import upstream
from bpac.models.connections import HEADERS, SessionEndpoint, new_session, total_timeout
from bpac.models.direct_endpoint import DirectEndpoint
from bpac.models.reading import read_whole

# They take turns, so that what else the machine does falls on all of them.
TURNS, POSTS = 24, 200
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 200}]}).encode()


class PostCosts(NamedTuple):
    """Microseconds of the client's processor time per post.

    Parameters
    ----------
    direct: through the direct endpoint.
    fallback: through the endpoint that the gateway uses where the direct one is not supported.
    session: through a plain ``ClientSession.post``.
    """

    direct: float
    fallback: float
    session: float

    @property
    def ratio(self) -> float:
        """The direct endpoint over ``ClientSession.post``."""
        return self.direct / self.session


async def _measure(url: str) -> PostCosts:
    timeout = total_timeout(60.0)
    async with new_session() as session, aiohttp.ClientSession() as plain:
        direct, fallback = DirectEndpoint(session, url, HEADERS), SessionEndpoint(session, url, HEADERS)
        ways: list[Callable[[], Any]] = [
            lambda: direct.post(BODY, timeout),
            lambda: fallback.post(BODY, timeout),
            lambda: plain.post(url, data=BODY, headers=HEADERS, timeout=timeout, allow_redirects=False),
        ]
        times: list[list[float]] = [[] for _ in ways]
        for _ in range(TURNS):
            for way, taken in zip(ways, times, strict=True):
                await _seconds(way, POSTS // 10)
                taken.append(await _seconds(way, POSTS))
    return PostCosts(*(1e6 * statistics.median(taken) / POSTS for taken in times))


async def _seconds(post: Callable[[], Any], posts: int) -> float:
    started = time.process_time()
    for _ in range(posts):
        async with post() as response:
            await read_whole(response.content, 2**20)
    return time.process_time() - started


def post_costs() -> PostCosts:
    """Measure all on one upstream."""
    with upstream() as server:
        return uvloop.run(_measure(f"http://127.0.0.1:{server.port}/v1/chat/completions"))


def main() -> None:
    """Print the costs."""
    costs = post_costs()
    print(
        f"a post: {costs.direct:.0f} µs of processor time through the direct endpoint, "
        f"{costs.session:.0f} µs through ClientSession.post, ratio {costs.ratio:.2f} "
        f"({costs.fallback:.0f} µs through the fallback)"
    )


if __name__ == "__main__":
    main()
