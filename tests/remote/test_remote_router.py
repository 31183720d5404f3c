"""``bpac.RemoteRouter`` against a running gateway: rounds, retries, and a gateway that is gone."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, web

import bpac
from bpac.errors import GatewayGone, GatewayRefused, InputError, NotAudited
from tests.gateway.configured import wait_for
from tests.gateway.deciding.own_route import KEYS, Client, own
from tests.gateway.running import RunningGateway
from tests.ports import free_port

QUICK: dict[str, Any] = {"timeout": 2.0, "retries": 2}


@pytest.fixture(scope="module")
def gateway() -> Iterator[RunningGateway]:
    """One gateway for the tests of this file."""
    with RunningGateway(own(gateway={"keys": KEYS})) as running:
        yield running


@asynccontextmanager
async def team(gateway: RunningGateway, **options: Any) -> AsyncIterator[bpac.RemoteRouter]:
    """A router that may decide and report."""
    async with bpac.RemoteRouter(gateway.url, "own", api_key="team-key", **{**QUICK, **options}) as router:
        yield router


def test_a_round_is_three_lines(gateway: RunningGateway) -> None:
    """Ticket, decision and loss: the gateway has counted the round."""
    operator = Client(gateway, "ops-key")
    before = operator.game()

    async def main() -> None:
        async with team(gateway) as router, router.round() as one:
            decision = await one.decide(0.25, usage={"completion_tokens": 5})
            assert await router.observe(decision, 0.5, usage={"completion_tokens": 50})
            assert (decision.call_expert, decision.uncertainty, decision.reason) == (True, 0.25, None)
            assert await router.refuse(await router.decide(0.1))
            assert await router.forfeit(await router.decide(0.1))
            with pytest.raises(GatewayRefused, match="role operator"):
                await router.summary()
        async with bpac.RemoteRouter(f"{gateway.url}/v1/", "own", api_key="ops-key") as operators:
            (game,) = await operators.summary()
            assert game["steps"] == before["steps"] + 3

    asyncio.run(main())
    after = operator.game()
    assert (after["steps"] - before["steps"], after["owed"]) == (3, 0)
    assert after["savings"]["expert_tokens"] >= 50


def test_a_round_without_a_decision_gives_its_ticket_back(gateway: RunningGateway) -> None:
    """Whether the draft has no score, fails, or is cancelled; the reason tells which."""
    operator = Client(gateway, "ops-key")

    async def main() -> None:
        async with team(gateway) as router:
            refused = RuntimeError("the draft's server refuses this question")
            refused.status_code = 400  # type: ignore[attr-defined]
            for failure in (None, RuntimeError(), refused, asyncio.CancelledError()):
                try:
                    async with router.round():
                        if failure is not None:
                            raise failure
                except (RuntimeError, asyncio.CancelledError):
                    pass
            with pytest.raises(InputError, match="uncertainty"):
                async with router.round() as one:
                    await one.decide(float("nan"))
        async with team(gateway) as router:  # the decision shows that the failures were no outage
            await router.observe(await router.decide(0.5), 0.0)

    before = operator.game()["unscored"]["reasons"]
    asyncio.run(main())
    after = operator.game()["unscored"]["reasons"]
    gained = {name: count - before.get(name, 0) for name, count in after.items()}
    assert gained == {"no-score": 3, "draft-failed": 1, "cancelled": 1}
    assert operator.status()["tickets"]["own"]["held"] == 0


class Lossy:
    """A network between router and gateway that passes requests on, and loses the first replies to each path.

    Parameters
    ----------
    target: the gateway.
    lost: how many replies are lost for each path.
    """

    def __init__(self, target: str, lost: int) -> None:
        self._target = target
        self._lost = lost
        self.seen: dict[str, int] = {}

    async def _pass_on(self, request: web.Request) -> web.Response:
        self.seen[request.path] = self.seen.get(request.path, 0) + 1
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        async with (
            ClientSession() as session,
            session.post(self._target + request.path, data=await request.read(), headers=headers) as response,
        ):
            body = await response.read()
            if self.seen[request.path] <= self._lost:
                assert request.transport is not None
                request.transport.close()
            return web.Response(body=body, status=response.status, content_type="application/json")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Its address."""
        app = web.Application()
        app.router.add_post("/{path:.*}", self._pass_on)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert runner.addresses
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


def test_lost_replies_change_nothing(gateway: RunningGateway) -> None:
    """Each request is sent again, and counts once: one ticket, one coin, one loss."""
    operator = Client(gateway, "ops-key")
    before, tickets = operator.game(), operator.status()["tickets"]["own"]

    async def main() -> None:
        network = Lossy(gateway.url, lost=2)
        async with network.running() as url, bpac.RemoteRouter(url, "own", api_key="team-key", **QUICK) as router:
            async with router.round() as one:
                decision = await one.decide(0.5)
            assert await router.observe(decision, 0.0)
            assert decision.id
            assert all(count >= 3 for count in network.seen.values())
            assert network.seen.keys() == {"/v1/arrive", "/v1/decide", "/v1/feedback"}

    asyncio.run(main())
    after = operator.game()
    assert (after["steps"], after["owed"]) == (before["steps"] + 1, before["owed"])
    assert operator.status()["tickets"]["own"]["given"] == tickets["given"] + 1


def test_if_the_gateway_is_gone_the_expert_answers() -> None:
    """Before the ticket, before the decision and before the report: nothing is kept, and nothing is raised."""

    async def main() -> None:
        nowhere = f"http://127.0.0.1:{free_port()}"
        async with bpac.RemoteRouter(nowhere, "own", timeout=0.5, retries=0) as router:
            async with router.round() as one:
                decision = await one.decide(0.0)
            assert (decision.id, decision.call_expert, decision.serve_draft) == (None, True, False)
            assert decision.reason == "no-gateway"
            assert await router.observe(decision, 0.0) is False
            assert (await router.decide(0.0)).call_expert
        async with bpac.RemoteRouter(nowhere, "own", timeout=0.5, retries=0, on_failure="error") as strict:
            with pytest.raises(GatewayGone, match="does not answer"):
                await strict.arrive()

    asyncio.run(main())


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"ticket": "tic-1"},
        {"ticket": 7, "decision": "dec-1", "call_expert": False, "serve_draft": True},
        {"ticket": "tic-1", "call_expert": False, "serve_draft": True},
        {"ticket": "tic-1", "decision": None, "call_expert": False, "serve_draft": True},
        {"ticket": "tic-1", "decision": "dec-1", "call_expert": "no", "serve_draft": "yes"},
    ],
)
def test_a_server_that_is_no_gateway_keeps_no_draft(reply: dict[str, Any]) -> None:
    """Another server may answer every request with status 200: the expert answers, and nothing is raised."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(reply)

    async def main() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        port = free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            async with bpac.RemoteRouter(f"http://127.0.0.1:{port}", "own", retries=0) as router:
                decision = await router.decide(0.0)
                assert (decision.id, decision.call_expert, decision.serve_draft) == (None, True, False)
        finally:
            await runner.cleanup()

    asyncio.run(main())


def test_a_gateway_that_goes_between_ticket_and_decision_keeps_nothing() -> None:
    """The round is not decided: the expert answers, and a later report says that it was not taken."""

    async def main(after: Callable[[], Awaitable[None]], url: str) -> None:
        async with bpac.RemoteRouter(url, "own", retries=0) as router, router.round() as one:
            audited = await router.decide(0.9)
            await after()
            decision = await one.decide(0.0)
            assert (decision.id, decision.call_expert) == (None, True)
            assert await router.observe(audited, 0.0) is False

    running = RunningGateway(own())
    with running:

        async def stop() -> None:
            running.stop()
            await asyncio.to_thread(wait_for, lambda: not running._thread.is_alive())

        asyncio.run(main(stop, running.url))


def test_mistakes_are_errors(gateway: RunningGateway) -> None:
    """A wrong key, a wrong route, a loss of a kept draft, a loss that is none."""

    async def main() -> None:
        async with bpac.RemoteRouter(gateway.url, "own", api_key="wrong", **QUICK) as router:
            with pytest.raises(GatewayRefused, match="no valid API key"):
                await router.arrive()
        async with bpac.RemoteRouter(gateway.url, "missing", api_key="team-key", **QUICK) as router:
            with pytest.raises(GatewayRefused, match="missing"):
                await router.decide(0.5)
        async with team(gateway) as router:
            decision = await router.decide(0.5)
            with pytest.raises(InputError, match="loss"):
                await router.observe(decision, 1.5)
            assert await router.observe(decision, 0.0)
            with pytest.raises(GatewayRefused, match="already"):
                await router.observe(decision, 0.0)
            with pytest.raises(NotAudited):
                await router.observe(decision._replace(call_expert=False), 0.0)
        with pytest.raises(InputError, match="on_failure"):
            bpac.RemoteRouter(gateway.url, "own", on_failure="draft")  # type: ignore[arg-type]

    asyncio.run(main())


def test_importing_the_package_stays_light() -> None:
    """``import bpac`` does not import aiohttp; a missing aiohttp is an error that names the extra."""
    program = (
        "import sys, bpac\n"
        "assert 'aiohttp' not in sys.modules\n"
        "sys.modules['aiohttp'] = None\n"
        "try: bpac.RemoteRouter\n"
        "except ImportError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "this needs aiohttp: install it with  pip install 'bpac[models]'\n"
