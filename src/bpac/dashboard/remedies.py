"""What an operator can do about requests without a score, refusals, audits without a grade, and failing servers."""

from collections.abc import Iterable

from bpac.dashboard.history.refusals import RefusalReason

# By the reason why a request has no score.
UNSCORED = {
    "no-score": "the draft model's server does not return what the score needs: enable log-probabilities there, or "
    'configure another score (score = "verbalized" needs none)',
    "draft-failed": "the draft model's server fails: check its health and the gateway's log",
    "draft-down": "the draft model's server was down when these requests arrived, so they did not wait for it: check "
    "its health; the gateway tries it again by itself",
    "draft-refused": "the draft model's server refuses these requests: compare what callers ask for with what it "
    "supports",
    "outage": "the draft model's server failed while these requests were in progress: check its health; routing "
    "resumes with the next draft that arrives",
    "n": "callers ask for several choices (n > 1), which cannot be scored: nothing to do, or have them ask for one",
    "modalities": "callers ask for other output than text, which cannot be scored: nothing to do",
    "draft-costs-more": "drafts cost more money than they save, so most requests go to the expert directly (minimise = "
    '"money"): choose a cheaper draft model, or remove the route',
    "store-down": "Redis could not be reached, or no gateway folded the game: check Redis and the network; routing "
    "resumes by itself",
    "error": "an internal error of the gateway: see its log",
}

# By the cause for which an audit could not be graded.
FORFEITED = {
    "expert failed": "the expert's server failed: check its health and the gateway's log",
    "draft failed": "the draft ended early, after its request was decided: check the health of the draft "
    "model's server",
    "draft cancelled": "the draft was cancelled because grading it could not raise the threshold: set on_takeover = "
    '"finish" to grade it anyway',
    "grader failed": "the two answers could not be compared: check the judge's server, or configure another loss",
    "deadline": "no loss was reported in time: report losses sooner, or raise deadline",
    "crowded out": "too many audits were waiting for a grade: report losses sooner, or raise max_owed",
    "restart": "the gateway stopped during grading: stop it with SIGTERM, or raise drain",
}

# By the kind of failure of a model's server.
UPSTREAM = {
    "busy": "its server is overloaded or failing (status 429 or 5xx): raise the vendor's rate limit, or check the "
    "server's health",
    "connection": "its server cannot be reached: check base_url, the network, and whether the server runs",
    "credentials": "its server does not accept the gateway's key: correct api_key or headers of this model",
    "cut_off": "its server ends streams early: check its health and the proxies before it",
    "elsewhere": "its server redirects to another address: correct base_url",
    "not_expressible": "its API has no field for what callers ask: add the field to drop of this model, or use a model "
    "with another api",
    "refused": "its server refuses requests: check model and base_url, and whether it supports what callers ask for, "
    "such as log-probabilities",
    "timeout": "its server does not answer in time: check its health, or raise timeout",
    "too_long": "its answers are longer than allowed: raise max_answer, or limit the tokens",
    "unusable": "its responses are not chat completions, or, if it is a judge, have no mark: check that base_url leads "
    "to an OpenAI-compatible API, and that the model is able to judge",
}

# By what is wrong with gateways that share games, or with the processes of a gateway.
SEVERAL = {
    "no folder": 'see "could not fold a game" in the logs of all gateways; check that all of them have the same '
    "version, and restart those that log it",
    "lag": "the processor of that gateway is busy, or Redis is slow: check both; another gateway takes over when that "
    "one is stopped; segments divide a route into games that are folded apart",
    "archive": "make room on the disk of the folder and check its owner; archiving goes on by itself. Nothing was lost",
    "unreported": "start them again with the same store_outage.file: they report by themselves; if a file is lost, "
    "nobody can know how many drafts it counted",
    "outside": "nothing is wrong; give store_outage fewer seconds, or leave it out, if this is too much",
    "missing": "they are started again by themselves; if they are not, the log says why they ended",
    "keeps ending": 'see "ended and is started again" in the log, with the exit code (-9: killed, often for lack of '
    "memory, so check the memory limit) and the error before it",
}

# By the status with which the expert's server refused a request without naming a field of it.
_REFUSED = {
    "404": "the expert's server does not know the model or the address: check model and base_url of the expert's model",
    "413": "requests are larger than the expert's server allows: raise its limit, or have callers send less",
}
# Fields that say what callers want. Without the others the answer is much the same.
_WANTED = frozenset({
    "function_call", "image_url", "input_audio", "json_schema", "modalities", "response_format", "tool_calls",
    "tool_choice", "tools",
})  # fmt: skip
_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})


def refusal_remedy(reason: RefusalReason) -> str:
    """What to do about requests that the expert's server refused.

    >>> refusal_remedy(RefusalReason("400", ("temperature",)))
    "the expert's server does not accept temperature: drop or rename it in the expert's table, or choose its preset"
    """
    named = set(reason.fields)
    steps = []
    if limits := named & _LIMITS:
        steps.append(f"{_listed(limits)}: set token_limit in the expert's table to the field that it accepts")
    if named & {"stream_options"}:
        steps.append("stream_options: set stream_options = false in the expert's table")
    if wanted := named & _WANTED:
        steps.append(f"{_listed(wanted)}: choose an expert that supports it, or drop it if answers do not need it")
    if rest := named - _LIMITS - _WANTED - {"stream_options"}:
        steps.append(f"{_listed(rest)}: drop or rename it in the expert's table, or choose its preset")
    if steps:
        return "the expert's server does not accept " + "; nor ".join(steps)
    return _REFUSED.get(
        reason.status,
        "the expert's server names no field: compare what callers send, such as long prompts, with what it supports, "
        "and set drop, rename or preset in the expert's table",
    )


def refusal_remedies_of(reasons: Iterable[str]) -> dict[str, str]:
    """What to do about each reason of refusals."""
    return {reason: refusal_remedy(RefusalReason.read(reason)) for reason in reasons}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def remedies_of(causes: Iterable[str], known: dict[str, str]) -> dict[str, str]:
    """What to do about each cause. Unknown causes refer to the log.

    Parameters
    ----------
    causes: the names under which they are counted.
    known: remedies by name.

    >>> remedies_of(["deadline"], FORFEITED)
    {'deadline': 'no loss was reported in time: report losses sooner, or raise deadline'}
    """
    return {cause: known.get(cause, "see the gateway's log") for cause in causes}
