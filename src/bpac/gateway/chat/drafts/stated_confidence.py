"""The confidence of a draft that has no room to state it: a tool call, or an answer in JSON.

To such a draft no line can be added, so the same model is asked for its confidence in a second request. The draft is
shown to it as its own answer, tool calls as JSON text: a call without its result would be refused.
"""

from typing import Any

from bpac.answer import Answer
from bpac.gateway.chat.drafts.impossible_drafts import asks_for_structure
from bpac.gateway.chat.request import ChatRequest
from bpac.scores import Needs
from bpac.wire.json import to_json

# What shaped the draft and would shape the confidence: formats, limits, further choices, log-probabilities.
_LEFT_OUT = (
    "response_format", "max_tokens", "max_completion_tokens", "stop", "n", "logprobs", "top_logprobs", "logit_bias",
    "prediction", "parallel_tool_calls",
)  # fmt: skip


def asked_separately(request: ChatRequest, needs: Needs) -> bool:
    """Whether a score needs a stated confidence that the answer to this request may have no room for."""
    return bool(needs.suffix) and asks_for_structure(request.body)


def confidence_body(request: ChatRequest, draft: Answer, question: str) -> dict[str, Any]:
    """The request for the confidence of a draft.

    Parameters
    ----------
    request: what the caller asked for.
    draft: the draft.
    question: asks for the confidence (``Needs.question``).
    """
    asked_for = request.for_draft().expert_body(stream=False)
    body = {key: value for key, value in asked_for.items() if key not in _LEFT_OUT}
    if body.get("tools"):
        body["tool_choice"] = "none"  # they stay, because earlier messages may use them
    asked = [{"role": "assistant", "content": _as_text(draft)}, {"role": "user", "content": question}]
    return {**body, "messages": [*request.body["messages"], *asked]}


def _as_text(draft: Answer) -> str:
    if not draft.tool_calls:
        return draft.text
    calls = [call.get("function", call) for call in draft.tool_calls]
    return "\n".join(filter(None, [draft.text, to_json({"tool_calls": calls}).decode()]))
