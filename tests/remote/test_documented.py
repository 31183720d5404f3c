"""docs/decide.md is true: its configuration is valid, its settings are those of the code, and its program runs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.decide_routes import DecideRouteSettings
from bpac.gateway.config.routes.routes import RouteSettings
from bpac.plugins.pair_settings import PairSettings
from tests.gateway.config.test_documented_settings import defaults, parsed
from tests.gateway.deciding.own_route import Client
from tests.gateway.running import RunningGateway

PAGE = (Path(__file__).parents[2] / "docs" / "decide.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The one code block of the page in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    assert isinstance(found, str)
    return found


def test_the_settings_of_the_page_are_those_of_the_code() -> None:
    """Every key of its own that such a route has is on the page, with its default."""
    table = re.findall(r"^\| `(\w+)` \| `(.*?)` \|", PAGE, flags=re.MULTILINE)
    own = {key: value for key, value in defaults(DecideRouteSettings).items() if key not in defaults(RouteSettings)}
    documented = {key: parsed(default) for key, default in table}
    assert documented == {key: list(value) if isinstance(value, tuple) else value for key, value in own.items()}


def test_the_program_of_the_page_runs_with_its_configuration() -> None:
    """As it stands, but for the address and the store; the gateway has counted all of its rounds."""
    config = tomllib.loads(block("toml"))
    Config.read(config)
    config["gateway"] |= {"listen": "127.0.0.1:0", "store": "memory://"}
    with RunningGateway(config) as gateway:
        program = block("python").replace("http://127.0.0.1:8800", gateway.url)
        ran = subprocess.run(
            [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout == f"{['42'] * 20}\n"
        (game,) = Client(gateway).status()["routes"]["homework"]
        assert (game["steps"], game["owed"]) == (20, 0)


def test_the_configuration_of_litellm_is_what_the_plug_in_reads() -> None:
    """The pair of models in the page's configuration of LiteLLM."""
    (model,) = [one for one in yaml.safe_load(block("yaml"))["model_list"] if "model_info" in one]
    assert PairSettings.read(model["model_info"]["bpac"], "model_info.bpac") == PairSettings("small", "large")
