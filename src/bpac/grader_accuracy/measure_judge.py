"""Measure a judge: ask it about pairs of answers with a known preference."""

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm

from bpac.arguments import whole
from bpac.errors import InputError, NoVerdict
from bpac.grader_accuracy.judge_agreement import JudgeAgreement, JudgedPair
from bpac.grader_accuracy.preference_pairs import PreferencePair, preference_pairs
from bpac.grading.judge import judge_prompt
from bpac.models.judging import Judge


async def measure_judge(
    judge: Judge,
    model: str,
    pairs: Sequence[PreferencePair] | None = None,
    body: Mapping[str, Any] | None = None,
    concurrency: int = 8,
) -> JudgeAgreement:
    """The agreement of a judge with known preferences, with a progress bar on standard error.

    The judge is asked as by ``bpac grade``, twice for every pair: with the better answer as the draft, and with the
    worse one. A server that fails is an error, because that says nothing about its model.

    Parameters
    ----------
    judge: the judge.
    model: the name of its model.
    pairs: the pairs (default: the built-in pairs).
    body: the request fields that the judge's client adds, for the record (default: none).
    concurrency: largest number of pairs that are judged at the same time (default: 8).
    """
    whole(concurrency, "concurrency", 1)
    chosen = preference_pairs() if pairs is None else pairs
    if not chosen:
        raise InputError("a judge is measured on at least one pair, got none")
    free = asyncio.Semaphore(concurrency)
    began = time.monotonic()
    with tqdm(total=len(chosen), desc="judge", unit="pair", leave=False, dynamic_ncols=True) as bar:

        async def judged(pair: PreferencePair) -> JudgedPair:
            async with free:
                found = await _judged(judge, pair)
            bar.update()
            return found

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(judged(pair)) for pair in chosen]
        except ExceptionGroup as error:
            raise error.exceptions[0] from None
    seconds = round(time.monotonic() - began, 3)
    marks = tuple(task.result() for task in tasks)
    return JudgeAgreement(model, tuple(judge_prompt()), marks, dict(body or {}), seconds)


async def _judged(judge: Judge, pair: PreferencePair) -> JudgedPair:
    try:
        better, worse = await judge.marks(pair.question, pair.better, pair.worse)
        worse_first, better_second = await judge.marks(pair.question, pair.worse, pair.better)
    except NoVerdict:
        return JudgedPair(pair.fault)
    return JudgedPair(pair.fault, ((better, worse), (better_second, worse_first)))


def measurement_key(model: str, pairs: Sequence[PreferencePair], body: Mapping[str, Any] | None = None) -> str:
    """A hash of everything that a measurement depends on: model, request fields, prompt and pairs.

    A saved result can be used again while the key is the same.

    >>> measurement_key("m", preference_pairs()) == measurement_key("m", preference_pairs()[:24])
    False
    """
    texts = [[pair.fault, pair.question, pair.better, pair.worse] for pair in pairs]
    parts = json.dumps([model, dict(body or {}), judge_prompt(), texts], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:16]
