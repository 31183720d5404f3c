"""Failures of model servers: each is counted, kept in the model's health, and logged with what to do about it.

The log has the first failure of each kind and status at once, and then at most one line per minute with the number of
failures since the last one. Nothing that a server wrote is quoted, because it may repeat a prompt or a key.
"""

import logging
import re
from typing import Any

from bpac.errors import AnswerError
from bpac.gateway.health.model_health import ModelHealth
from bpac.gateway.telemetry.log_rate import LogRate
from bpac.gateway.telemetry.metrics.counters import Metrics
from bpac.wire.json import from_json

log = logging.getLogger("bpac.gateway")

# Statuses about the gateway's own key or account. A caller would take them for a verdict on the caller's key.
CREDENTIALS = frozenset({401, 402, 403, 407})
# Failures that do not pass by themselves: an operator has to change something.
_LASTING = frozenset({"credentials", "elsewhere", "too_long"})
# Bytes of an error response in which names of fields are searched.
LONGEST_MESSAGE = 2**16

# What an operator can do, by the kind of failure.
REMEDIES = {
    "busy": "the server fails or limits requests: check its log and load, and the rate limit of this key",
    "connection": "the server cannot be reached: check that it runs, and base_url of this model",
    "credentials": "the server does not accept the gateway's own key: check api_key and headers of this model, and the "
    "account behind the key",
    "cut_off": "the server ends its streams early: check its log, and the timeouts of proxies before it",
    "elsewhere": "the server redirects to another address: correct base_url of this model",
    "not_expressible": "the API of this model has no field for what callers ask: add the field to drop of this model, "
    "or use a model whose api has it (docs/providers.md)",
    "refused": "the server refuses these requests: compare what is sent with what this model supports",
    "timeout": "the server does not answer in time: check its load, or change timeout of this model",
    "too_long": "the answer is longer than allowed: raise max_answer or max_answer_values in [gateway]",
    "unusable": "the response is not what was asked for: check base_url of this model, and what answers there; a judge "
    "must answer with one mark from 1 to 10",
}
# By status, where it says more than the kind.
_STATUS_REMEDIES = {
    402: "the account behind the gateway's own key cannot pay: check api_key of this model, and its account",
    404: "the server does not know this model or address: check model and base_url of this model",
    429: "the server limits requests: raise the rate limit or quota of this key, or send it fewer requests",
}
_LOGPROBS_REMEDY = (
    "the server refuses to return log-probabilities: use a model that returns them as the draft, or configure "
    'score = "verbalized", which needs none'
)

# Names of request fields: which of them an error message contains says what the server refuses, and quotes nothing.
_FIELDS = (
    "budget_tokens", "chat_template_kwargs", "enable_thinking", "frequency_penalty", "function_call", "image_url",
    "input_audio", "json_schema", "logit_bias", "logprobs", "max_completion_tokens", "max_output_tokens",
    "max_tokens", "metadata", "min_p", "modalities", "output_config", "parallel_tool_calls", "prediction",
    "presence_penalty", "prompt_cache_key", "reasoning_effort", "repetition_penalty", "response_format",
    "safety_identifier", "seed", "service_tier", "stop_sequences", "stream_options", "temperature", "thinking",
    "tool_calls", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "verbosity",
)  # fmt: skip
_WORDS = re.compile(r"\b(" + "|".join(_FIELDS) + r")\b")


def fields_named(data: bytes) -> tuple[str, ...]:
    """The request fields that the error response of a server names.

    >>> fields_named(b'{"error": {"message": "logprobs are not supported with reasoning_effort", "param": "logprobs"}}')
    ('logprobs', 'reasoning_effort')
    """
    if len(data) > LONGEST_MESSAGE:
        return ()
    try:
        error = from_json(data)
    except AnswerError:
        return ()
    return tuple(sorted(set(_WORDS.findall(_text(error)))))


def _text(value: Any, depth: int = 4) -> str:
    """All texts in a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return " ".join(_text(part, depth - 1) for part in value) if depth else ""
    return value if isinstance(value, str) else ""


def remedy(kind: str, status: int | None = None, fields: tuple[str, ...] = ()) -> str:
    """What an operator can do about a failure.

    Parameters
    ----------
    kind: one of ``REMEDIES``.
    status: the HTTP status, if there was a response (default: none).
    fields: the request fields that the server named (default: none).
    """
    if kind == "refused" and {"logprobs", "top_logprobs"} & set(fields):
        return _LOGPROBS_REMEDY
    return _STATUS_REMEDIES.get(status or 0) or REMEDIES[kind]


class UpstreamRecord:
    """Records the answers and the failures of one model.

    Parameters
    ----------
    model: the name of the model in the configuration.
    metrics: counts ``bpac_upstream_failures_total{model,kind}`` and ``bpac_upstream_statuses_total{model,status}``
        (default: a private counter).
    health: what is known about the model (default: a new one).
    """

    def __init__(self, model: str, metrics: Metrics | None = None, health: ModelHealth | None = None) -> None:
        self.model = model
        self.health = health or ModelHealth()
        self._metrics = metrics or Metrics()
        self._rate = LogRate()

    def succeeded(self) -> None:
        """Record an answer; the first one after a failure is logged."""
        health = self.health
        if health.ok:
            health.record_success()
            return
        failures = health.in_a_row
        health.record_success()
        if times := self._rate.count("again"):
            known = {"model": self.model, "failures": failures, "since_last_line": times}
            log.warning("model answers again", extra=known)

    def failed(self, kind: str, status: int | None, text: str, fields: tuple[str, ...] = ()) -> None:
        """Record a failed attempt.

        Parameters
        ----------
        kind: one of ``REMEDIES``.
        status: the HTTP status; none if there was no response.
        text: what went wrong; nothing that the server wrote.
        fields: the request fields that the server named.
        """
        self._metrics.count("bpac_upstream_failures_total", model=self.model, kind=kind)
        if status is not None:
            self._metrics.count("bpac_upstream_statuses_total", model=self.model, status=str(status))
        if fields:
            text += f"; it names {', '.join(fields)}"
        advice = remedy(kind, status, fields)
        self.health.record_failure(kind, status, text, advice)
        if times := self._rate.count(f"{kind} {status}"):
            known = {"model": self.model, "kind": kind, "status": status, "since_last_line": times}
            said = known | {"error": text, "remedy": advice}
            if kind in _LASTING:
                log.error("model cannot be used", extra=said)
            else:
                log.warning("model failed", extra=said)


class UpstreamRecords(dict[str, UpstreamRecord]):
    """The records of all models by name; that of a model that is not known yet is made.

    Parameters
    ----------
    metrics: counts the failures of all models.
    """

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self._metrics = metrics

    def __missing__(self, name: str) -> UpstreamRecord:
        record = self[name] = UpstreamRecord(name, self._metrics)
        return record
