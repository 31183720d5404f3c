"""Whether drafts of a model can have a score, by asking the model."""

from dataclasses import replace

from bpac.errors import BpacError, NoScore
from bpac.gateway.health.findings import Checked
from bpac.gateway.health.probe import Probed, asked, score_finding
from bpac.gateway.health.roles import ModelRole
from bpac.models.retrying import Failed
from bpac.scores import confidence_in_words, named_score


async def allows(model: Probed, score: str, seconds: float) -> Checked | None:
    """Whether drafts of a model can have a score, as a finding; none if the model does not answer.

    Parameters
    ----------
    model: the model.
    score: the name of the score.
    seconds: how long each of a few attempts may take.
    """
    wanted = named_score(score)
    if wanted.needs.logprobs and not model.settings.gives_logprobs:
        return Checked("score", 'log-probabilities cannot be asked for (drop, or api = "messages")', "error")
    try:
        # One answer tells: further samples are requested in the same way.
        completion, refused = await asked(model, replace(wanted.needs, samples=0), seconds)
    except (Failed, BpacError):
        return None
    if refused:
        return Checked("score", f"it refuses a request for log-probabilities ({refused})", "error")
    if wanted.needs.logprobs:
        return score_finding(wanted, completion.answer, ModelRole({}))
    if wanted.needs.suffix:
        try:
            confidence_in_words(completion.answer.text)
        except NoScore:
            return Checked("score", "it states no confidence in words when asked to", "error")
    return Checked("score", "its drafts have a score")
