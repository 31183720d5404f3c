"""Model servers that refuse what the vendors refuse, and think when the vendors' models think: one per preset.

What is imitated is what docs/providers.md lists. A server answers with status 400 or 422 if a request breaks one of its
rules, and otherwise with a short answer, after some thinking if the request turns thinking on.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bpac.testing import Reply, Request
from tests.wire.translating.chats import MESSAGE_REQUEST, RESPONSE_REQUEST, known

# A rule looks at a request and says what is wrong with it; empty if nothing is.
Rule = Callable[[Request], str]

# The tokens that a thinking model spends before its answer begins.
THOUGHTS = 200
ANSWER = "The answer is 42.\nConfidence: 90%"


@dataclass
class Vendor:
    """The server of a vendor, as a script for ``ScriptedServer``.

    Parameters
    ----------
    thinks: whether a request turns thinking on; raises ``KeyError`` if the vendor does not know what it asks for.
    rules: what is refused.
    status: the status of a refusal.

    Attributes
    ----------
    refusals: why requests were refused, in order.
    thought: for each model that was asked, whether it thought.
    """

    thinks: Callable[[Mapping[str, Any]], bool]
    rules: tuple[Rule, ...] = ()
    status: int = 400
    refusals: list[str] = field(default_factory=list)
    thought: dict[str, bool] = field(default_factory=dict)

    def __call__(self, request: Request) -> Reply:
        """The reply to a request."""
        for rule in self.rules:
            if wrong := rule(request):
                self.refusals.append(wrong)
                return Reply(wrong, status=self.status)
        try:
            thinks = self.thinks(request.body)
        except KeyError as error:
            self.refusals.append(f"invalid value {error}")
            return Reply(f"invalid value {error}", status=self.status)
        self.thought[str(request.body["model"])] = thinks
        limits = (request.body.get(f"max_{name}tokens") for name in ("", "completion_", "output_"))
        limit = next(filter(None, limits), 10**6)
        if thinks and limit <= THOUGHTS:
            return Reply("", reasoning="6 times 7 is " * limit, finish_reason="length")
        return Reply(ANSWER, reasoning="6 times 7 is 42" if thinks else "", logprobs=not thinks)


def refuses(*names: str, when: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> Rule:
    """Some fields are not supported."""
    return lambda request: next(
        (f"Unsupported parameter: {name}" for name in names if name in request.body and when(request.body)), ""
    )


def knows_only(*names: str) -> Rule:
    """All other fields are forbidden."""
    known = set(names)
    return lambda request: next((f"Extra inputs are not permitted: {name}" for name in set(request.body) - known), "")


def ids(pattern: str) -> Rule:
    """Ids of tool calls have a form, and results belong to calls."""

    def rule(request: Request) -> str:
        made: set[str] = set()
        for message in request.body["messages"]:
            made |= {call["id"] for call in message.get("tool_calls") or ()}
            found = message.get("tool_call_id")
            if found is not None and found not in made:
                return f"Tool call id {found} is not that of a call"
        wrong = [one for one in made if not re.fullmatch(pattern, one)]
        return f"Tool call id was {wrong[0]} but must be {pattern}" if wrong else ""

    return rule


def no_thinking_in_history(request: Request) -> str:
    """Thinking of another model is refused: its signature is not valid."""
    for message in request.body["messages"]:
        content = message.get("content")
        parts = [part.get("type") for part in content] if isinstance(content, list) else []
        if "reasoning_content" in message or "thinking" in parts or "<think>" in str(content):
            return "Invalid signature in thinking block"
    return ""


def needs_reasoning_content(thinks: Callable[[Mapping[str, Any]], bool]) -> Rule:
    """While the model thinks, every earlier answer must have its thinking."""

    def rule(request: Request) -> str:
        earlier = [message for message in request.body["messages"] if message["role"] == "assistant"]
        missing = any("reasoning_content" not in message for message in earlier)
        return "Missing reasoning_content field in the assistant message" if thinks(request.body) and missing else ""

    return rule


def level_or_budget(request: Request) -> str:
    """A level and a budget of thinking contradict each other."""
    both = "reasoning_effort" in request.body and "extra_body" in request.body
    return "You can only set one of thinking_level and thinking_budget" if both else ""


def of_api(path: str, adapters: Mapping[bool, TypeAdapter[Any]], *more: str) -> Rule:
    """Requests are those that the vendor's own package defines, at its address; ``more`` are fields of older models."""

    def rule(request: Request) -> str:
        if request.path != path:
            return f"not found: {request.path}"
        if path.endswith("messages") and "anthropic-version" not in request.headers:
            return "anthropic-version: header is required"
        body = {name: value for name, value in request.body.items() if name not in more}
        try:
            unknown = known(adapters["stream" in body], body) != body
        except ValidationError as error:
            return str(error)
        return "Extra inputs are not permitted" if unknown else ""

    return rule


def no_blocks_of_thinking(request: Request) -> str:
    """As ``no_thinking_in_history``, in the format of the Messages API."""
    blocks = [
        block for turn in request.body["messages"] if isinstance(turn["content"], list) for block in turn["content"]
    ]
    if any(block["type"] == "thinking" for block in blocks) or "<think>" in str(blocks):
        return "Invalid signature in thinking block"
    wrong = [
        block["id"] for block in blocks if block["type"] == "tool_use" and not re.fullmatch(r"[\w-]+", block["id"])
    ]
    return f"tool_use.id: {wrong[0]} should match pattern" if wrong else ""


def azure_address(request: Request) -> str:
    """The path goes before the query, and the key is not a bearer token."""
    if not re.fullmatch(r"/v1/chat/completions\?api-version=[\w-]+", request.path):
        return f"Resource not found: {request.path}"
    if "authorization" in request.headers or "api-key" not in request.headers:
        return "Access denied due to missing api-key"
    return ""


def effort(**known: bool) -> Callable[[Mapping[str, Any]], bool]:
    """Thinking by ``reasoning_effort``: which values are known, and whether the model thinks with them."""
    return lambda body: known[body.get("reasoning_effort", "high")]


def switched(body: Mapping[str, Any]) -> bool:
    """Thinking by ``thinking: {type}``, on unless it is turned off."""
    return {"enabled": True, "adaptive": True, "disabled": False}[body.get("thinking", {"type": "enabled"})["type"]]


def template(name: str) -> Callable[[Mapping[str, Any]], bool]:
    """Thinking by an argument of the chat template, on unless it is turned off."""
    return lambda body: bool(body.get("chat_template_kwargs", {}).get(name, True))


def claude(body: Mapping[str, Any]) -> bool:
    """Thinking as far as the effort goes; it cannot be turned off."""
    if "thinking" in body:
        raise KeyError("thinking")
    return {"low": False, "high": True}[body.get("output_config", {"effort": "high"})["effort"]]


def routed(body: Mapping[str, Any]) -> bool:
    """OpenRouter's own object."""
    return {"none": False, "high": True}[body.get("reasoning", {"effort": "high"})["effort"]]


SAMPLING = ("temperature", "top_p")
LOGPROBS = ("logprobs", "top_logprobs")
GPT = effort(none=False, minimal=False, low=True, high=True)
OPENAI = (
    refuses("max_tokens"), refuses(*SAMPLING, *LOGPROBS, when=GPT), ids(r".{1,40}"),
)  # fmt: skip
ANTHROPIC = (refuses(*LOGPROBS), ids(r"[\w-]{1,64}"), no_thinking_in_history)
NATIVE = (no_blocks_of_thinking, refuses(*LOGPROBS))
MISTRAL_FIELDS = (
    "model", "messages", "temperature", "top_p", "max_tokens", "stream", "stop", "random_seed", "metadata",
    "response_format", "tools", "tool_choice", "presence_penalty", "frequency_penalty", "n", "prediction",
    "parallel_tool_calls", "prompt_mode", "reasoning_effort", "logprobs", "top_logprobs",
)  # fmt: skip


def vendor(preset: str) -> Vendor:
    """A new server of the vendor that a preset is for."""
    thinks_template = template("enable_thinking")
    made = {
        "openai": lambda: Vendor(GPT, OPENAI),
        "openai-gpt-5": lambda: Vendor(
            effort(minimal=False, low=True, high=True), (refuses("max_tokens", *SAMPLING, *LOGPROBS), ids(r".{1,40}"))
        ),
        "anthropic-4.5": lambda: Vendor(switched, (*ANTHROPIC, refuses(*SAMPLING, when=switched), _budget)),
        "anthropic-4.6": lambda: Vendor(switched, (*ANTHROPIC, refuses(*SAMPLING, when=switched))),
        "anthropic": lambda: Vendor(claude, (*ANTHROPIC, refuses(*SAMPLING, "top_k"))),
        "openai-responses": lambda: Vendor(
            lambda body: GPT({"reasoning_effort": body.get("reasoning", {}).get("effort", "high")}),
            (of_api("/v1/responses", RESPONSE_REQUEST), _too_small),
        ),
        "anthropic-messages-4.5": lambda: Vendor(
            switched,
            (
                of_api("/v1/messages", MESSAGE_REQUEST, *SAMPLING),
                refuses(*SAMPLING, when=switched),
                _budget,
                _thinking_before_calls,
                *NATIVE,
            ),
        ),
        "anthropic-messages-4.6": lambda: Vendor(
            switched, (of_api("/v1/messages", MESSAGE_REQUEST, *SAMPLING), refuses(*SAMPLING, when=switched), *NATIVE)
        ),
        "anthropic-messages": lambda: Vendor(claude, (of_api("/v1/messages", MESSAGE_REQUEST), *NATIVE)),
        "gemini-2.5-flash": lambda: Vendor(effort(none=False, low=True, high=True), (level_or_budget,)),
        "gemini-3-flash": lambda: Vendor(effort(minimal=False, low=True, high=True), (level_or_budget,)),
        "gemini-3-pro": lambda: Vendor(effort(low=False, high=True), (level_or_budget,)),
        "vllm": lambda: Vendor(effort(none=False, high=True)),
        "dashscope": lambda: Vendor(lambda body: bool(body.get("enable_thinking", True))),
        "deepseek": lambda: Vendor(switched, (needs_reasoning_content(switched),)),
        "glm": lambda: Vendor(switched, (refuses("stream_options"),)),
        "glm-5.3": lambda: Vendor(effort(low=False, high=True, max=True), (refuses("stream_options"),)),
        "kimi": lambda: Vendor(switched, (needs_reasoning_content(switched),)),
        "mistral": lambda: Vendor(
            effort(none=False, high=True), (knows_only(*MISTRAL_FIELDS), ids("[A-Za-z0-9]{9}")), status=422
        ),
        "gpt-oss": lambda: Vendor(effort(low=False, medium=True, high=True)),
        "ollama": lambda: Vendor(effort(none=False, high=True)),
        "llama-cpp": lambda: Vendor(thinks_template),
        "openrouter": lambda: Vendor(routed),
        "azure": lambda: Vendor(GPT, (azure_address, *OPENAI)),
    }
    if preset.endswith(("-vllm", "-sglang")):
        return Vendor(thinks_template if preset.startswith("qwen3") else template("thinking"))
    return made[preset]()


def _budget(request: Request) -> str:
    budget = request.body.get("thinking", {}).get("budget_tokens", 0)
    limit = request.body.get("max_tokens")
    return "max_tokens must be greater than thinking.budget_tokens" if limit is not None and limit <= budget else ""


def _thinking_before_calls(request: Request) -> str:
    """While thinking has a budget, calls whose results the model is to go on with must have thinking before them."""
    if request.body.get("thinking", {}).get("type") != "enabled":
        return ""
    turns = [turn["content"] if isinstance(turn["content"], list) else [] for turn in request.body["messages"]]
    results = any(block["type"] == "tool_result" for block in turns[-1])
    wrong = results and turns[-2] and turns[-2][0]["type"] not in ("thinking", "redacted_thinking")
    return "Expected thinking or redacted_thinking, but found tool_use" if wrong else ""


def _too_small(request: Request) -> str:
    return "max_output_tokens must be at least 16" if request.body.get("max_output_tokens", 16) < 16 else ""
