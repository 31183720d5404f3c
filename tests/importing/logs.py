"""The same ten calls of a draft and an expert, as each program logs them."""

import json
import math
from typing import Any

QUESTIONS = 10
SMALL, LARGE = "small-1", "large-1"
# The draft of every third question is wrong and unsure.
WRONG = {number for number in range(QUESTIONS) if number % 3 == 0}


def prompt(number: int) -> list[dict[str, Any]]:
    """The messages of a question."""
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"What is {number} + 1?"}]


def text(number: int, model: str) -> str:
    """The answer of a model."""
    return str(number + 1 + 10 * (model == SMALL and number in WRONG))


def probability(number: int) -> float:
    """The probability of the draft's only token."""
    return 0.4 if number in WRONG else 0.9


def completion(number: int, model: str) -> dict[str, Any]:
    """A chat completion."""
    token = {"token": text(number, model), "logprob": math.log(probability(number)), "top_logprobs": []}
    message = {"role": "assistant", "content": text(number, model)}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": "stop",
        "logprobs": {"content": [token]},
    }
    tokens = 1 if model == SMALL else 40
    return {"id": f"c-{model}-{number}", "object": "chat.completion", "model": f"{model}-0101", "choices": [choice],
            "usage": {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": 9 + tokens}}  # fmt: skip


def openai(model: str) -> list[dict[str, Any]]:
    """Request and response in one record."""
    return [
        {"request": {"model": model, "messages": prompt(n)}, "response": completion(n, model)} for n in range(QUESTIONS)
    ]


def streamed(model: str, as_text: bool = False) -> list[dict[str, Any]]:
    """Request and response in one record, the response as chunks or as the text of server-sent events."""
    records = []
    for n in range(QUESTIONS):
        whole = completion(n, model)
        choice, head = whole["choices"][0], {"object": "chat.completion.chunk", "model": whole["model"]}
        said = {"index": 0, "delta": choice["message"], "logprobs": choice["logprobs"]}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        chunks = [
            head | {"choices": [said]},
            head | {"choices": [end]},
            head | {"choices": [], "usage": whole["usage"]},
        ]
        events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        request = {"model": model, "messages": prompt(n), "stream": True}
        records.append({"request": request, "response": events if as_text else chunks})
    return records


def batch_input(model: str) -> list[dict[str, Any]]:
    """The input file of the batch API."""
    return [
        {"custom_id": f"q{n}", "method": "POST", "url": "/v1/chat/completions",
         "body": {"model": model, "messages": prompt(n)}}
        for n in range(QUESTIONS)
    ]  # fmt: skip


def batch_output(model: str) -> list[dict[str, Any]]:
    """The output file of the batch API, in another order."""
    return [
        {"id": f"b{n}", "custom_id": f"q{n}", "error": None,
         "response": {"status_code": 200, "request_id": f"r{n}", "body": completion(n, model)}}
        for n in reversed(range(QUESTIONS))
    ]  # fmt: skip


def litellm(model: str, *, as_text: bool = False) -> list[dict[str, Any]]:
    """Rows of LiteLLM's spend logs; as text, as a database exports them."""
    rows: list[dict[str, Any]] = []
    for n in range(QUESTIONS):
        row: dict[str, Any] = {
            "request_id": f"chatcmpl-{model}-{n}", "call_type": "acompletion", "model": f"openai/{model}",
            "model_group": model, "spend": 0.001, "prompt_tokens": 9, "completion_tokens": 1 if model == SMALL else 40,
            "startTime": "2026-01-01T00:00:00Z", "session_id": f"s{n}", "status": "success", "metadata": {"tag": "a"},
            "messages": {} if as_text else prompt(n), "proxy_server_request": {"model": model, "messages": prompt(n)},
            "response": completion(n, model),
        }  # fmt: skip
        rows.append({k: json.dumps(v) if as_text and isinstance(v, dict) else v for k, v in row.items()})
    return rows


def langfuse(model: str, *, snake: bool = False) -> list[dict[str, Any]]:
    """Langfuse's observations: of the API, or of an export to a bucket."""
    rows: list[dict[str, Any]] = []
    for n in range(QUESTIONS):
        usage = {"input": 9, "output": 1 if model == SMALL else 40}
        said = {"role": "assistant", "content": text(n, model)}
        if snake:
            rows.append({"id": f"o{model}{n}", "trace_id": f"t{n}", "type": "GENERATION", "provided_model_name": model,
                         "level": "DEFAULT", "input": json.dumps(prompt(n)), "output": json.dumps(said),
                         "usage_details": json.dumps(usage),
                         "metadata": json.dumps({"confidence": probability(n)})})  # fmt: skip
        else:
            rows.append({"id": f"o{model}{n}", "traceId": f"t{n}", "type": "GENERATION", "model": model,
                         "input": prompt(n), "output": said, "usageDetails": usage, "parentObservationId": None,
                         "metadata": {"confidence": probability(n)}})  # fmt: skip
    return rows


def _typed(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_typed(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _listed(value)}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def _listed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _typed(value)} for key, value in attributes.items()]


def opentelemetry(model: str, generation: str) -> list[dict[str, Any]]:
    """OTLP in JSON, one batch of spans, of one of three generations of the conventions; or of spans and of logs."""
    spans, entries = [], []
    for n in range(QUESTIONS):
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": model, "gen_ai.response.model": f"{model}-0101",
            "gen_ai.response.finish_reasons": ["stop"], "app.confidence": probability(n),
        }  # fmt: skip
        tokens, events = 1 if model == SMALL else 40, []
        if generation == "attributes":
            said = [
                {"role": "assistant", "parts": [{"type": "text", "content": text(n, model)}], "finish_reason": "stop"}
            ]
            asked = [{"role": m["role"], "parts": [{"type": "text", "content": m["content"]}]} for m in prompt(n)]
            attributes |= {"gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said)}
            attributes["gen_ai.usage.output_tokens"] = tokens
        elif generation == "events":
            events = [
                {"name": f"gen_ai.{m['role']}.message", "attributes": _listed({"content": m["content"]})}
                for m in prompt(n)
            ]
            choice = {"index": 0, "finish_reason": "stop", "message": json.dumps({"content": text(n, model)})}
            events.append({"name": "gen_ai.choice", "attributes": _listed(choice)})
            attributes["gen_ai.usage.output_tokens"] = tokens
        elif generation == "logs":
            ids = {"traceId": f"{n:032x}", "spanId": _span_id(model, n)}
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text(n, model)}}
            heard = [(f"gen_ai.{m['role']}.message", {"content": m["content"]}) for m in prompt(n)]
            entries += [
                {"eventName": name, "body": _typed(body), "attributes": [], **ids}
                for name, body in (*heard, ("gen_ai.choice", choice))
            ]
            attributes["gen_ai.usage.output_tokens"] = tokens
        else:
            for at, message in enumerate(prompt(n)):
                attributes |= {f"gen_ai.prompt.{at}.{key}": value for key, value in message.items()}
            attributes |= {"gen_ai.completion.0.content": text(n, model), "gen_ai.usage.completion_tokens": tokens}
        spans.append({"traceId": f"{n:032x}", "spanId": _span_id(model, n), "name": f"chat {model}",
                      "attributes": _listed(attributes), "events": events, "status": {}})  # fmt: skip
    agent = {
        "traceId": "0" * 32,
        "name": "invoke_agent",
        "attributes": _listed({"gen_ai.operation.name": "invoke_agent"}),
    }
    batch = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [agent, *spans]}]}]}
    logs = {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": entries}]}]}
    return [logs, batch] if entries else [batch]


def _span_id(model: str, number: int) -> str:
    return f"{number + 100 * (model == SMALL):016x}"
