"""Probing a model: one small question of the gateway's own, from whose answer an operator learns what works.

Checked are: the server is reachable, it accepts the key, it knows the model, a draft of it has a score (which usually
needs log-probabilities), and thinking is off for drafts and on for experts. A probe never raises: whatever goes wrong
is a finding with a remedy.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from bpac.answer import Answer
from bpac.errors import AnswerError, BpacError, Refused
from bpac.gateway.chat.request import ChatRequest
from bpac.gateway.chat.upstreams.upstream_errors import CredentialsRefused
from bpac.gateway.config.models.models import ModelSettings
from bpac.gateway.health.breaker import counts
from bpac.gateway.health.findings import Checked
from bpac.gateway.health.roles import ModelRole
from bpac.models.fields import redacted
from bpac.models.retrying import Failed
from bpac.scores import Needs, Score
from bpac.wire.completions import Completion
from bpac.wire.json import from_json

QUESTION: Mapping[str, Any] = {"role": "user", "content": "Say in one short sentence why the sky is blue."}
# Enough for a short answer, and to see whether a model thinks.
MAX_TOKENS = 256
# A log-probability below it is a placeholder: no model generates a token that it holds to be so unlikely.
IMPOSSIBLE = -1000.0
# From so many tokens on it is not by chance that each has exactly probability 1.
MANY_TOKENS = 5
# Statuses with which servers refuse a field of a request.
FIELD_REFUSED = (400, 422)
# What servers say of a model that they do not have.
_NO_MODEL = re.compile(
    r"\bmodel\b.{0,100}?(not.found|does(?: not|n.t) exist)|(unknown|no such|invalid) model|model_not_found",
    re.IGNORECASE | re.DOTALL,
)


# What servers send, and how thinking is turned off, by their API.
_ANSWERS = {"chat": "a chat completion", "responses": "a response", "messages": "a message"}
_OFF = {
    "chat": "body = { chat_template_kwargs = { enable_thinking = false } }",
    "responses": 'body = { reasoning_effort = "none" }',
    "messages": 'body = { thinking = { type = "disabled" } }, or output_config = { effort = "low" }',
}

# What a model is asked for that may answer no chats, by the endpoint.
EMBEDDING: Mapping[str, Any] = {"input": "the sky is blue"}
COMPLETION: Mapping[str, Any] = {"prompt": "The sky is", "max_tokens": 1}

# Seconds within which a server must give one token: requests wait for it until then.
LONGEST_TRIAL = 10.0


class Probed(Protocol):
    """A model that can be asked once."""

    @property
    def settings(self) -> ModelSettings:
        """The model and its server."""

    async def once(self, body: Mapping[str, Any], seconds: float) -> Completion:
        """The answer of one attempt; ``Failed``, ``Refused`` or ``Unavailable`` if there is none."""

    async def trial(self, seconds: float) -> None:
        """Ask for one token, and raise like ``once``."""

    async def answers(self, path: str, body: Mapping[str, Any], seconds: float) -> bool:
        """Whether a request that is no chat is answered."""


async def probe(model: Probed, role: ModelRole, seconds: float) -> list[Checked]:
    """What a model can and cannot do.

    Parameters
    ----------
    model: the model.
    role: what it is used for.
    seconds: how long each of a few attempts may take.
    """
    needs = Needs()
    for score in role.scores.values():
        needs |= score.needs
    known = [Checked("reachable", "reachable"), Checked("key", "key accepted"), Checked("model", "model known")]
    if role.alone and await model.answers("/embeddings", EMBEDDING, seconds):
        return [*known, Checked("answer", "answers embeddings")]
    try:
        answer, refused = await asked(model, needs, seconds)
    except (Failed, BpacError) as error:
        if isinstance(error, Refused) and role.alone and await model.answers("/completions", COMPLETION, seconds):
            return [*known, Checked("answer", "answers completions, no chats")]
        if isinstance(error, Refused) and not role.used:
            # It may be a model for something else than chats.
            return [Checked("reachable", "reachable"), Checked("key", "key accepted")]
        if isinstance(error.__cause__, TimeoutError) and await trial(model, seconds) is None:
            remedy = "a model that thinks for long may need a larger probe_timeout in [gateway]"
            slow = f"no answer to a short question within {seconds:g} s"
            return [Checked("reachable", "reachable"), Checked("answer", slow, "warning", remedy)]
        return list(_failed(error, model.settings, seconds))
    found = known
    if refused:
        found.append(_no_logprobs(f"it refuses a request for log-probabilities ({refused})", role))
    else:
        found += [score_finding(score, answer.answer, role) for score in _different(role.scores)]
    return [*found, *_thinking(answer, model.settings, role)]


async def trial(model: Probed, seconds: float) -> Failed | None:
    """Ask a model for one token: why its server is down, or none if it responds, be it with a refusal.

    Parameters
    ----------
    model: the model.
    seconds: how long it may take, up to ``LONGEST_TRIAL``.
    """
    try:
        await model.trial(min(seconds, LONGEST_TRIAL))
    except Failed as failure:
        return failure if counts(failure) else None
    except BpacError:
        return None
    return None


async def asked(model: Probed, needs: Needs, seconds: float) -> tuple[Completion, str]:
    """The answer, and how the server refused a request for log-probabilities; empty if it did not."""
    request = ChatRequest({"messages": [QUESTION], "max_tokens": MAX_TOKENS}, model.settings.name)
    unlimited = ChatRequest({"messages": [QUESTION]}, model.settings.name)
    wanted, plain = request.draft_body(needs, stream=False), request.expert_body(stream=False)
    try:
        return await model.once(wanted, seconds), ""
    except Refused as error:
        if error.status not in FIELD_REFUSED or says_no_model(error):
            raise
        refused = error
    try:
        # Some models refuse max_tokens and name its successor: that is not what is checked here.
        return await model.once(unlimited.draft_body(needs, stream=False), seconds), ""
    except Refused:
        if not needs.logprobs:
            raise
    try:
        return await model.once(plain, seconds), said_by(refused)
    except Refused:
        return await model.once(unlimited.expert_body(stream=False), seconds), said_by(refused)


def _different(scores: Mapping[str, Score]) -> list[Score]:
    """Each score once, without those that need further answers to the same question."""
    found: list[Score] = []
    for score in scores.values():
        if score not in found and not score.needs.samples:
            found.append(score)
    return found


def _failed(error: Exception, model: ModelSettings, seconds: float) -> Iterator[Checked]:
    """What an error means for the operator."""
    where, status = redacted(model.base_url), getattr(error, "status", None)
    if isinstance(error, Failed) and status is None:
        if isinstance(error.__cause__, AnswerError):
            remedy = f"check base_url, which usually ends in /v1, and that the server's API is api = {model.api!r}"
            said = f"{where} sends something else than {_ANSWERS[model.api]}"
            yield Checked("reachable", said, "error", remedy)
        elif isinstance(error.__cause__, TimeoutError):
            remedy = "see whether the server hangs; a slow one needs a larger probe_timeout in [gateway]"
            yield Checked("reachable", f"no answer of {where} within {seconds:g} s", "error", remedy)
        else:
            remedy = "start the server, or correct base_url"
            yield Checked("reachable", f"no connection to {where} ({error})", "error", remedy)
        return
    if status is not None and 300 <= status < 400:
        yield Checked("reachable", f"{where} redirects elsewhere (status {status})", "error", "correct base_url")
        return
    yield Checked("reachable", "reachable")
    if isinstance(error, CredentialsRefused):
        remedy = "check api_key and headers of this model"
        yield Checked("key", f"key not accepted (status {error.replied})", "error", remedy)
    elif status is None:
        yield Checked("answer", redacted(str(error)), "error", "see what the server sends")
    elif status == 404 or says_no_model(error):
        remedy = f"check that {model.model!r} is a model of this server, base_url, which usually ends in /v1, and api"
        yield Checked("model", f"model or path not known ({said_by(error)})", "error", remedy)
    elif status == 429:
        yield Checked("answer", "busy: the rate limit is reached (status 429)", "warning", "raise the limit, or wait")
    elif status is not None and status >= 500:
        yield Checked("answer", f"the server fails with status {status}", "error", "see the log of the model server")
    else:
        remedy = "remove the field that it names from body of this model, or change it"
        yield Checked("answer", f"a plain question is refused ({said_by(error)})", "error", remedy)


def score_finding(score: Score, answer: Answer, role: ModelRole) -> Checked:
    """Whether a draft has a score, from log-probabilities that are plausible where it needs them."""
    needs = score.needs
    if needs.logprobs:
        if not answer.tokens:
            return _no_logprobs("it sends no log-probabilities", role)
        values = [token.logprob for token in answer.tokens]
        if any(math.isnan(value) or value < IMPOSSIBLE for value in values):
            return _no_logprobs("its log-probabilities are impossible values", role)
        if len(values) >= MANY_TOKENS and not any(values):
            return _no_logprobs("its log-probabilities are all 0", role)
        if needs.top_logprobs and not any(token.top for token in answer.tokens):
            return _no_logprobs("it sends no top_logprobs", role)
    try:
        score(answer)
    except AnswerError as error:
        remedy = "choose another score for its routes"
        return Checked("score", f"its draft has no score ({type(error).__name__})", "error", remedy)
    return Checked("score", "log-probabilities given" if needs.logprobs else "its drafts have a score")


def _no_logprobs(what: str, role: ModelRole) -> Checked:
    routes = ", ".join(role.scores)
    remedy = f'set score = "auto" or "agreement_and_confidence" for {routes}, or use a server that sends them'
    return Checked("score", f"{what}, so the expert would answer every request", "error", remedy)


def _thinking(completion: Completion, model: ModelSettings, role: ModelRole) -> Iterator[Checked]:
    """Whether thinking is off for a draft, and on for an expert."""
    thinks = bool(completion.answer.reasoning) or _reasoning_tokens(completion) > 0
    if role.scores and not role.expert_of:
        if not thinks:
            yield Checked("thinking", "thinking off")
            return
        remedy = f"turn thinking off, for example {_OFF[model.api]}"
        yield Checked("thinking", "thinking is on, so each draft costs about as much as an expert", "warning", remedy)
    elif role.expert_of:
        if thinks or not role.same_as_draft:
            yield Checked("thinking", "thinking on" if thinks else "no thinking seen")
            return
        remedy = f"turn thinking on in body of this model: its draft is {model.model} without thinking, too"
        yield Checked("thinking", "no thinking seen", "warning", remedy)


def _reasoning_tokens(completion: Completion) -> int:
    """Tokens that a model thought without showing them."""
    usage = completion.body().get("usage")
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    count = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return count if isinstance(count, int) else 0


def says_no_model(error: Exception) -> bool:
    """Whether a refusal says that the server does not have the model."""
    return _NO_MODEL.search(said_by(error)) is not None


def said_by(error: Exception) -> str:
    """The status of a refusal and the message of the server, which answers a question of the gateway's own."""
    body = from_json(getattr(error, "body", b"") or b"{}")
    inner = body.get("error", body) if isinstance(body, dict) else body
    message = inner.get("message") or inner.get("detail") if isinstance(inner, dict) else inner
    text = " ".join(str(message or "").split())[:200]
    status = f"status {getattr(error, 'status', None)}"
    return f"{status}: {redacted(text)}" if text else status
