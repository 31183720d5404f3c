"""Prompts as features: the real embedding, projected by a fixed rule, in a thread of its own."""

import asyncio
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from bpac.models import prompts
from bpac.models.prompts import PROMPT_FEATURES, PromptFeatures, check_installed, projected

QUESTIONS = (
    "What is the derivative of x squared?",
    "Differentiate the function x^2.",
    "Who wrote the novel Moby-Dick?",
)


async def features_of(*questions: str) -> list[tuple[float, ...]]:
    """The features of prompts that arrive one after the other."""
    failures: list[str] = []
    features = PromptFeatures(failures.append)
    features.preload()
    await asyncio.to_thread(features._thread.submit(time.sleep, 0).result)  # until the model is loaded
    found = [await features.get(features.start(question)) for question in questions]
    await features.close()
    assert not failures
    return found


def test_prompts_of_similar_meaning_have_similar_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is closer to its paraphrase than to another one, and the same question is the same every time."""
    monkeypatch.setattr(prompts, "PATIENCE", 30.0)
    check_installed()
    one, paraphrase, other, again = map(np.array, asyncio.run(features_of(*QUESTIONS, QUESTIONS[0])))
    assert len(one) == len(PROMPT_FEATURES)
    assert np.array_equal(one, again)
    assert np.linalg.norm(one - paraphrase) < np.linalg.norm(one - other)


def test_the_projection_never_changes() -> None:
    """Journals of different times and machines must mean the same by ``prompt_1``."""
    assert projected(np.arange(384) / 1000.0)[:4] == (3.018, 4.126, -0.714, 2.812)


def test_a_prompt_that_takes_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is embedded in a thread of its own, and the request goes on before that has ended; the next waits no more."""
    loop_thread, threads, goes_on = threading.get_ident(), [], threading.Event()

    def slow(text: str) -> Any:
        threads.append(threading.get_ident())
        assert goes_on.wait(60.0)
        return np.ones(384)

    monkeypatch.setattr(prompts, "load_embed", lambda: slow)
    monkeypatch.setattr(prompts, "PATIENCE", 0.01)

    async def run() -> tuple[tuple[float, ...], list[str]]:
        failures: list[str] = []
        features = PromptFeatures(failures.append)
        found = await features.get(features.start("x"))
        monkeypatch.setattr(prompts, "PATIENCE", 30.0)
        found += await features.get(features.start("y"))
        goes_on.set()
        await features.close()
        return found, failures

    assert asyncio.run(run()) == ((), ["late", "late"])
    assert loop_thread not in threads


def test_a_thread_that_hangs_holds_up_neither_requests_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for it is bounded, however many prompts come, and the gateway stops without it."""
    goes_on = threading.Event()

    def hanging(text: str) -> Any:
        goes_on.wait(60.0)
        return np.full(384, np.nan)

    monkeypatch.setattr(prompts, "load_embed", lambda: hanging)
    monkeypatch.setattr(prompts, "PATIENCE", 0.01)
    monkeypatch.setattr(prompts, "MOST_AT_END", 0.01)

    async def run() -> list[str]:
        failures: list[str] = []
        features = PromptFeatures(failures.append)
        for _ in range(100):
            assert await features.get(features.start("x")) == ()
        await features.close()
        goes_on.set()
        await asyncio.to_thread(features._thread.shutdown)
        return failures

    assert Counter(asyncio.run(run())) == {"late": prompts.MOST_WAITING, "busy": 100 - prompts.MOST_WAITING}


def test_an_embedding_that_is_not_finite_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The router would refuse it, and the request would fail."""
    monkeypatch.setattr(prompts, "load_embed", lambda: lambda text: np.full(384, np.nan))
    monkeypatch.setattr(prompts, "PATIENCE", 30.0)

    async def run() -> list[str]:
        failures: list[str] = []
        features = PromptFeatures(failures.append)
        assert await features.get(features.start("x")) == ()
        await features.close()
        return failures

    assert asyncio.run(run()) == ["ValueError"]
