"""What an operator can do about requests without a score and audits without a verdict, by their cause."""

from collections.abc import Iterable

# By why a draft has no score.
UNSCORED = {
    "no-score": "the draft's server does not send what the score needs: have it send log-probabilities, or choose "
    'another score (score = "verbalized" needs none)',
    "draft-failed": "the draft's server fails: see its health and the gateway's log",
    "draft-refused": "the draft's server refuses these requests: compare what callers ask for with what it supports",
    "outage": "the draft's server went down with these requests under way: see its health; drafts count again with the "
    "first one that comes",
    "n": "callers ask for several choices (n), which have no score",
    "modalities": "callers ask for other modalities than text, which have no score",
    "error": "the gateway itself failed: its log has the error",
}

# By why an outcome was given up.
FORFEITED = {
    "expert failed": "see the health of the expert's server and the gateway's log",
    "draft failed": "the draft broke off after its request was decided: see the health of the draft's server",
    "draft cancelled": 'the draft was stopped because its grade could not lift the threshold: on_takeover = "finish" '
    "grades it anyway",
    "grader failed": "the answers could not be compared: see the judge's server, or choose another loss",
    "deadline": "no outcome came in time: report losses sooner, or raise deadline",
    "crowded out": "too many outcomes were outstanding: report losses sooner, or raise max_owed",
    "restart": "the gateway stopped while they were being graded: stop it by a signal, or raise drain",
}


def remedies_of(causes: Iterable[str], known: dict[str, str]) -> dict[str, str]:
    """What to do about each cause; the log, where nothing better is known.

    Parameters
    ----------
    causes: names, as they are counted.
    known: remedies by name.

    >>> remedies_of(["deadline"], FORFEITED)
    {'deadline': 'no outcome came in time: report losses sooner, or raise deadline'}
    """
    return {cause: known.get(cause, "see the gateway's log") for cause in causes}
