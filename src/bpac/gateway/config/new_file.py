"""A new configuration file, written from a few answers: two models and a route."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpac.errors import SettingsError
from bpac.gateway.config.environment import without_missing
from bpac.gateway.config.file import Config
from bpac.models.api import ApiName

# Turns thinking off and on where one server has one model that can do both, by its API; chats: vLLM, SGLang, llama.cpp.
_THINKING: Mapping[ApiName, Mapping[str, str]] = {
    "chat": {
        "draft": "body = { chat_template_kwargs = { enable_thinking = false } }  # other servers: docs/providers.md",
        "expert": "body = { chat_template_kwargs = { enable_thinking = true } }",
    },
    "responses": {"draft": 'preset = "openai-responses"', "expert": 'preset = "openai-responses"'},
    "messages": {
        "draft": 'preset = "anthropic-messages"  # models up to 4.6: docs/providers.md',
        "expert": 'preset = "anthropic-messages"',
    },
}
# What a route's loss is for each kind of answers.
LOSSES: Mapping[str, str] = {
    "short": '"answer"                        # equal final answers: numbers, choices, labels',
    "prose": '{ name = "judge", judge = "expert" }  # the expert marks both answers',
    "tools": '"tool_call"                     # the same tools with the same arguments',
    "external": '"external"                      # your own program reports losses to /v1/feedback',
}


@dataclass(frozen=True, slots=True)
class NewModel:
    """One of the two models.

    Parameters
    ----------
    url: the address of its server, ``/v1`` included.
    model: its name on that server.
    key: ``env:NAME``, the environment variable that holds the key; empty if the server needs none.
    api: the API of the server.
    """

    url: str
    model: str
    key: str = ""
    api: ApiName = "chat"

    def __post_init__(self) -> None:
        if self.key and not self.key.startswith("env:"):
            raise SettingsError("a key is given as env:NAME, the environment variable that holds it: files are copied")


@dataclass(frozen=True, slots=True)
class NewGateway:
    """What a new configuration file says.

    Parameters
    ----------
    draft, expert: the two models.
    epsilon, alpha: the promise.
    route: the name that clients send as ``model``.
    answers: what answers are like: one of ``LOSSES``.
    score: how the uncertainty of a draft is computed.
    listen, store: as in ``[gateway]``.
    """

    draft: NewModel
    expert: NewModel
    epsilon: float = 0.05
    alpha: float = 0.1
    route: str = "chat"
    answers: str = "short"
    score: str = "mean_token_probability"
    listen: str = "127.0.0.1:8800"
    store: str = "sqlite:///bpac.db"

    def to_toml(self) -> str:
        """The file; ``SettingsError`` if a gateway would not accept it."""
        one_model = (self.draft.url, self.draft.model) == (self.expert.url, self.expert.model)
        lines = [
            "# A gateway of bpac: bpac doctor checks this file and the models, bpac serve runs it.",
            "[gateway]",
            f"listen = {_quoted(self.listen)}",
            f"store = {_quoted(self.store)}",
            "# To be reached from other machines: listen on 0.0.0.0, and keys, each in an environment variable.",
            '# api_keys = ["env:BPAC_KEY"]',
        ]
        for name, model, use in (
            ("draft", self.draft, "fast and cheap: drafts every answer"),
            ("expert", self.expert, "slow and expensive: the reference"),
        ):
            lines += ["", f"[models.{name}]  # {use}", f"base_url = {_quoted(model.url)}"]
            lines.append(f"model = {_quoted(model.model)}")
            lines += [f"api_key = {_quoted(model.key)}"] if model.key else []
            lines += [f"api = {_quoted(model.api)}"] if model.api != "chat" else []
            lines += [_THINKING[model.api][name]] if one_model else []
        lines += [
            "",
            f"[routes.{_quoted(self.route)}]  # clients send this name as model",
            'draft = "draft"',
            'expert = "expert"',
            f"epsilon = {self.epsilon!r}  # largest average loss per request, compared with always asking the expert",
            f"alpha = {self.alpha!r}  # probability with which this promise may fail",
            f"score = {_quoted(self.score)}",
            f"loss = {LOSSES[self.answers]}",
        ]
        text = "\n".join(lines) + "\n"
        values: Any = tomllib.loads(text)
        Config.read(without_missing(values))
        return text


def _quoted(text: str) -> str:
    """A string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
