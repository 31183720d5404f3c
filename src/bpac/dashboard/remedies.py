"""What an operator can do about requests without a score, audits that could not be graded, and failing models."""

from collections.abc import Iterable

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
    "refused": "its server refuses requests: check model and base_url, and whether it supports what callers ask for, "
    "such as log-probabilities",
    "timeout": "its server does not answer in time: check its health, or raise timeout",
    "too_long": "its answers are longer than allowed: raise max_answer, or limit the tokens",
    "unusable": "its responses are not chat completions, or, if it is a judge, have no mark: check that base_url leads "
    "to an OpenAI-compatible API, and that the model is able to judge",
}


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
