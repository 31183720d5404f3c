"""Presets: what the servers of each vendor refuse, and how their models are told to think or not to think.

A preset sets the same keys of a model that a configuration file can set, so that each of them can be overridden.
docs/providers.md lists all presets; where it says "probe", only a request shows what the server does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Thinking = Literal["off", "on"]

# What reasoning models of OpenAI refuse.
_SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias")
_LOGPROBS = ("logprobs", "top_logprobs")
# Fields of OpenAI's API that a server which checks all fields does not know.
_OPENAI_ONLY = (
    "audio", "logit_bias", "modalities", "safety_identifier", "service_tier", "store", "user", "verbosity",
    "web_search_options",
)  # fmt: skip
# Fields with which a caller could turn thinking on or off, in any server's way. They would undo what makes a model the
# draft or the expert, and a server that does not know them refuses them.
SWITCHES = (
    "reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget", "think", "output_config",
    "chat_template_kwargs.enable_thinking", "chat_template_kwargs.thinking", "extra_body.google.thinking_config",
)  # fmt: skip
# Tokens that a thinking model may need before it has answered.
ROOM_TO_THINK = 16_384


@dataclass(frozen=True, slots=True)
class Preset:
    """What a preset sets.

    Parameters
    ----------
    off, on: the fields of a request with which the model does not think, and with which it does; none if it cannot.
    drop, drop_off, drop_on: fields that are left out always, or only if the model does not think, or only if it does.
    keys: further keys of ``[models.NAME]``.
    history: ``thinking_in_history`` if the model thinks; if it does not, thinking is taken out.
    logprobs: whether drafts have log-probabilities: ``yes``, ``no``, ``by model``, or ``probe`` if that is not known.
    key_header: the header that carries the API key (default: ``Authorization``).
    """

    off: Mapping[str, Any] | None
    on: Mapping[str, Any] | None
    drop: tuple[str, ...] = ()
    drop_off: tuple[str, ...] = ()
    drop_on: tuple[str, ...] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    history: Literal["drop", "fill", "own"] = "drop"
    logprobs: Literal["yes", "no", "by model", "probe"] = "probe"
    key_header: str | None = None

    def fields(self, thinking: Thinking | None) -> Mapping[str, Any] | None:
        """The fields of a request; empty if it is not said whether the model thinks, none if that cannot be set."""
        return {} if thinking is None else self.on if thinking == "on" else self.off

    def settings(self, thinking: Thinking | None) -> dict[str, Any]:
        """The keys of ``[models.NAME]`` that the preset sets.

        Parameters
        ----------
        thinking: whether the model thinks; none if that is left to the server.

        >>> PRESETS["qwen3-vllm"].settings("off")["body"]
        {'chat_template_kwargs': {'enable_thinking': False}}
        """
        body = dict(self.fields(thinking) or {})
        drop = self.drop
        if thinking is not None:
            drop += self.drop_on if thinking == "on" else self.drop_off
            drop += SWITCHES  # also those in the body, which would be merged with the caller's
        settings: dict[str, Any] = {"body": body, "drop": list(drop), **self.keys}
        settings["thinking_in_history"] = self.history if thinking == "on" else "drop"
        if thinking == "on":
            settings["least_max_tokens"] = ROOM_TO_THINK
        return settings


def _effort(off: str | None, on: str) -> dict[str, Any]:
    return {"off": None if off is None else {"reasoning_effort": off}, "on": {"reasoning_effort": on}}


def _template(name: str) -> dict[str, Any]:
    return {mode: {"chat_template_kwargs": {name: mode == "on"}} for mode in ("off", "on")}


_SWITCHED: dict[str, Any] = {"off": {"thinking": {"type": "disabled"}}, "on": {"thinking": {"type": "enabled"}}}
_OPENAI: dict[str, Any] = {"token_limit": "max_completion_tokens", "tool_call_ids": "openai"}
_ANTHROPIC: dict[str, Any] = {
    "drop": _LOGPROBS, "logprobs": "no", "keys": {"token_limit": "max_tokens", "tool_call_ids": "anthropic"},
}  # fmt: skip
# Fields of the chat API that OpenAI's Responses API and Anthropic's Messages API do not have, and whose absence changes
# answers little: presets drop them, while requests with any other such field are refused.
_CHAT_ONLY = ("frequency_penalty", "logit_bias", "presence_penalty", "seed")
_MESSAGES: dict[str, Any] = {
    "drop": (*_LOGPROBS, *_CHAT_ONLY, "verbosity"), "logprobs": "no",
    "keys": {"api": "messages", "tool_call_ids": "anthropic"}, "history": "own",
}  # fmt: skip
_QWEN3, _OTHER_TEMPLATE = _template("enable_thinking"), _template("thinking")

PRESETS: Mapping[str, Preset] = MappingProxyType({
    "openai": Preset(**_effort("none", "high"), drop_on=_SAMPLING + _LOGPROBS, keys=_OPENAI),
    "openai-gpt-5": Preset(**_effort("minimal", "high"), drop=_SAMPLING + _LOGPROBS, keys=_OPENAI, logprobs="no"),
    "openai-responses": Preset(
        **_effort("none", "high"), drop=_CHAT_ONLY, drop_on=("temperature", "top_p", *_LOGPROBS),
        # The API refuses smaller limits.
        keys={"api": "responses", "tool_call_ids": "openai", "least_max_tokens": 16}, history="own",
    ),
    "anthropic-4.5": Preset(
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled", "budget_tokens": ROOM_TO_THINK // 2}},
        drop_on=("temperature", "top_p", "top_k"), **_ANTHROPIC,
    ),
    "anthropic-4.6": Preset(
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        drop_on=("temperature", "top_p", "top_k"), **_ANTHROPIC,
    ),
    "anthropic": Preset(
        {"output_config": {"effort": "low"}}, {"output_config": {"effort": "high"}},
        **_ANTHROPIC | {"drop": (*_LOGPROBS, "temperature", "top_p", "top_k")},
    ),
    "anthropic-messages-4.5": Preset(
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled", "budget_tokens": ROOM_TO_THINK // 2}},
        drop_on=("temperature", "top_p", "top_k"), **_MESSAGES,
    ),
    "anthropic-messages-4.6": Preset(
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        drop_on=("temperature", "top_p", "top_k"), **_MESSAGES,
    ),
    "anthropic-messages": Preset(
        {"output_config": {"effort": "low"}}, {"output_config": {"effort": "high"}},
        **_MESSAGES | {"drop": (*_MESSAGES["drop"], "temperature", "top_p", "top_k")},
    ),
    "gemini-2.5-flash": Preset(**_effort("none", "high"), logprobs="by model"),
    "gemini-3-flash": Preset(**_effort("minimal", "high"), logprobs="by model"),
    "gemini-3-pro": Preset(**_effort("low", "high"), logprobs="by model"),
    "qwen3-vllm": Preset(**_QWEN3, logprobs="yes"),
    "deepseek-vllm": Preset(**_OTHER_TEMPLATE, logprobs="yes"),
    "granite-vllm": Preset(**_OTHER_TEMPLATE, logprobs="yes"),
    "kimi-vllm": Preset(**_OTHER_TEMPLATE, logprobs="yes"),
    "vllm": Preset({"reasoning_effort": "none"}, {"reasoning_effort": "high"}, logprobs="yes"),
    "qwen3-sglang": Preset(**_QWEN3),
    "deepseek-sglang": Preset(**_OTHER_TEMPLATE),
    "granite-sglang": Preset(**_OTHER_TEMPLATE),
    "kimi-sglang": Preset(**_OTHER_TEMPLATE),
    "dashscope": Preset({"enable_thinking": False}, {"enable_thinking": True}),
    "deepseek": Preset(
        _SWITCHED["off"], {**_SWITCHED["on"], "reasoning_effort": "high"}, history="fill",
    ),
    "glm": Preset(**_SWITCHED, keys={"stream_options": False}),
    "glm-4.7": Preset(None, _SWITCHED["on"], keys={"stream_options": False}),
    "glm-5.3": Preset(**_effort("low", "max"), keys={"stream_options": False}),
    "kimi": Preset(**_SWITCHED, history="fill"),
    "mistral": Preset(
        **_effort("none", "high"),
        drop=_OPENAI_ONLY,
        keys={
            "rename": {"seed": "random_seed"}, "token_limit": "max_tokens", "stream_options": False,
            "tool_call_ids": "mistral",
        },
    ),
    "gpt-oss": Preset(**_effort("low", "high"), logprobs="by model"),
    "ollama": Preset(**_effort("none", "high"), logprobs="yes"),
    "llama-cpp": Preset({"chat_template_kwargs": {"enable_thinking": False}}, {}, logprobs="yes"),
    "openrouter": Preset({"reasoning": {"effort": "none"}}, {"reasoning": {"effort": "high"}}, logprobs="by model"),
    "azure": Preset(
        **_effort("none", "high"), drop_on=_SAMPLING + _LOGPROBS, keys=_OPENAI, logprobs="by model",
        key_header="api-key",
    ),
})  # fmt: skip
