"""The plug-in for LiteLLM without the proxy: a call that is cut off, and a loss that is no number."""

import os
import subprocess
from pathlib import Path

from tests.gateway.deciding.own_route import Client, own
from tests.gateway.running import RunningGateway
from tests.plugins.litellm_proxy import litellm_environment

PROGRAM = """
import asyncio, sys
import litellm
from bpac.plugins.litellm import BpacProvider, ProxiedCall

class Provider(BpacProvider):
    def uncertainty(self, pair, draft):
        return 0.5
    def loss(self, pair, draft, expert):
        return float("nan")

async def main():
    asked, slow, release = [], asyncio.Event(), asyncio.Event()

    async def ask(self, model, **more):
        asked.append(model)
        if model == "large" and not slow.is_set():
            slow.set()
            await release.wait()
        message = {"role": "assistant", "content": "42"}
        return litellm.ModelResponse(choices=[{"message": message, "finish_reason": "stop"}])

    ProxiedCall.ask = ask
    provider = Provider()
    model = {"bpac": {"draft": "small", "expert": "large"}}
    parameters = {"litellm_call_id": "one", "model_info": model}
    given = {"model": "own", "api_base": sys.argv[1], "messages": [], "optional_params": {}}
    first = asyncio.create_task(provider.acompletion(**given, litellm_params=parameters))
    await slow.wait()
    first.cancel()
    await asyncio.wait([first])
    await provider.acompletion(**given, litellm_params=parameters)
    release.set()
    while provider._tasks:
        await asyncio.wait(provider._tasks)
    print(*asked)

asyncio.run(main())
"""


def test_a_call_that_is_cut_off_and_repeated_has_one_coin_and_its_loss_counts() -> None:
    """The expert alone answers the repeated call. The round goes on, and NaN, from a subclass, is a loss of 1."""
    sources = str(Path(__file__).parents[2] / "src")
    settings = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONPATH": sources}
    with RunningGateway(own(policy="always")) as gateway:
        program = [str(litellm_environment() / "bin" / "python"), "-c", PROGRAM, gateway.url]
        done = subprocess.run(program, env=os.environ | settings, capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["small", "large", "large"], done.stderr
        game = Client(gateway).game()
        assert (game["steps"], game["owed"], game["forfeits"]) == (1, 0, {"caller gave up": 1})
