"""What the calls of a cascade cost where ``call_prices`` is not set."""

from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.cascades import CallPrices, call_prices
from bpac.gateway.health.doctor import diagnose
from bpac.routing.cascade.router import CascadeRouter
from bpac.testing import ScriptedServer
from tests.gateway.chat.test_cascade import ask, cascade, scripted
from tests.gateway.games.test_tickets import router_of
from tests.gateway.running import RunningGateway
from tests.gateway.serving import to_toml

GUESS = CallPrices((1.0, 4.0, 16.0), assumed=True)


def priced(base_url: str, *outputs: float | None, **options: Any) -> dict[str, Any]:
    """A cascade without ``call_prices`` whose models have these prices of generated tokens."""
    config = cascade(base_url, **options)
    del config["routes"]["homework"]["call_prices"]
    for model, output in zip(config["models"].values(), outputs, strict=True):
        if output is not None:
            model["price"] = {"input": 0.1, "output": output}
    return config


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ((0.6, 2.5, 10.0), CallPrices((0.6, 2.5, 10.0))),
        ((None, None, None), GUESS),
        ((0.6, None, 10.0), GUESS),
        ((3.0, 3.0, 3.0), GUESS),  # one model at several efforts
        ((0.6, 10.0, 2.5), GUESS),
        ((0.0, 2.5, 10.0), GUESS),
    ],
)
def test_calls_are_weighed_by_the_prices_of_the_models_if_they_rise(
    outputs: tuple[float | None, ...], expected: CallPrices
) -> None:
    """Otherwise each call is assumed to cost four times the one before."""
    route = Config.read(priced("http://127.0.0.1:1/v1", *outputs)).routes["homework"]
    assert call_prices(route) == expected
    router = route.new_router()
    assert isinstance(router, CascadeRouter)
    assert router.policy.prices == expected.prices


def test_what_is_assumed_is_said_at_the_start_and_by_the_doctor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With what to do; nothing is said where prices are known."""
    said = "new games assume that calls of small, middle, large cost 1 : 4 : 16: give call_prices"
    file = tmp_path / "gateway.toml"
    with ScriptedServer(scripted) as server:
        for outputs, warned in (((None, None, None), True), ((0.6, 2.5, 10.0), False)):
            caplog.clear()
            config = priced(server.base_url, *outputs)
            with RunningGateway(config):
                assert (said in caplog.text) == warned
            file.write_text(to_toml(config))
            assert any(said in str(one) for one in diagnose(file)) == warned


def test_a_game_keeps_the_prices_that_it_began_with(tmp_path: Path) -> None:
    """Prices of models that are written into the file later do not end a game; ``call_prices`` does."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    with ScriptedServer(scripted) as server:
        seen = []
        changed = cascade(server.base_url, gateway=store, call_prices=[1, 5, 25])
        for config in (
            priced(server.base_url, None, None, None, gateway=store),
            priced(server.base_url, 0.6, 2.5, 10.0, gateway=store),
            changed,
        ):
            with RunningGateway(config) as gateway:
                assert ask(gateway, 1).status == 200
                gateway.idle()
                router = router_of(gateway)
                assert isinstance(router, CascadeRouter)
                seen.append((gateway.status()["game"], router.step, router.policy.prices))
    assert seen == [(1, 1, (1.0, 4.0, 16.0)), (1, 2, (1.0, 4.0, 16.0)), (2, 1, (1.0, 5.0, 25.0))]
