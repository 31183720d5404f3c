"""The effort dial of the local model: no, short and long thinking, by ``reasoning_effort``.

The server's chat template reads ``reasoning_effort`` from ``chat_template_kwargs``: ``none`` answers at once, ``low``
asks for short steps, as the model was trained to write them, and ``high`` lets it think. Without it, the template is
that of the model file: ``enable_thinking`` says whether the model thinks.
"""

from typing import Any

from bpac.benchmarks.prompting import METHODS
from bpac.errors import InputError

EFFORTS = ("none", "low", "high")
# What a call costs relative to one with long thinking: the mean number of generated tokens (3.3, 11.9 and 24.8 on 150
# held-out questions).
CALL_PRICES = (0.13, 0.48, 1.0)
SHORT_STEPS = str(METHODS["chain-of-draft"].apply([])[0]["content"])
CHAT_TEMPLATE = (
    "{%- set effort = reasoning_effort if reasoning_effort is defined else '' -%}"
    "{%- set first = 0 -%}"
    "{%- if effort == 'low' -%}{{- '<|system|>' -}}"
    "{%- if messages[0].role == 'system' -%}{{- messages[0].content + '\\n\\n' -}}{%- set first = 1 -%}{%- endif -%}"
    "{{- '" + SHORT_STEPS + "<|end|>' -}}{%- endif -%}"
    "{%- for message in messages[first:] -%}{{- '<|' + message.role + '|>' -}}"
    "{%- if message.reasoning_content -%}{{- '<think>' + message.reasoning_content + '</think>' -}}{%- endif -%}"
    "{{- message.content + '<|end|>' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}"
    "{%- if effort == 'none' or (enable_thinking is defined and enable_thinking is false) -%}"
    "{{- '<think></think>' -}}{%- endif -%}{%- endif -%}"
)


def effort_body(effort: str) -> dict[str, Any]:
    """The request fields that set the effort.

    >>> effort_body("low")
    {'chat_template_kwargs': {'reasoning_effort': 'low'}}
    """
    if effort not in EFFORTS:
        raise InputError(f"effort must be one of {', '.join(EFFORTS)}, got {effort!r}")
    return {"chat_template_kwargs": {"reasoning_effort": effort}}


def effort_models(base_url: str, name: str = "bpac-local") -> dict[str, dict[str, Any]]:
    """The tables ``[models.NAME]`` of a gateway with one model per effort, cheapest first.

    Parameters
    ----------
    base_url: the base URL of a ``LocalServer``.
    name: the name of its model.

    >>> list(effort_models("http://127.0.0.1:8001/v1"))
    ['effort-none', 'effort-low', 'effort-high']
    """
    return {
        f"effort-{effort}": {
            "base_url": base_url,
            "model": name,
            "body": {"temperature": 0.0, "max_tokens": 400, **effort_body(effort)},
        }
        for effort in EFFORTS
    }
