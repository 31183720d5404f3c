"""Scores on log-probabilities of real models, compared with a direct computation from the raw responses."""

import math

import pytest

from bpac.answer import Answer
from bpac.local.server import LocalServer
from bpac.scores import named_score
from tests.local.chat import chat, post

QUESTIONS = ("3+4=", "What is the capital of France?", "Name three colours.", "987+658=")


@pytest.mark.parametrize("question", QUESTIONS)
def test_scores_agree_with_the_raw_response(either: LocalServer, question: str) -> None:
    """Mean probability, perplexity and entropy agree with a computation from the server's JSON."""
    body = chat(question, thinking=False, logprobs=True, top_logprobs=5, max_tokens=24)
    status, raw = post(f"{either.base_url}/chat/completions", body)
    assert status == 200
    listed = raw["choices"][0]["logprobs"]["content"]
    logs = [token["logprob"] for token in listed]
    assert logs
    probability = sum(math.exp(log) for log in logs) / len(logs)
    perplexity = 1.0 - math.exp(sum(logs) / len(logs))
    entropies = []
    for token in listed:
        known = [math.exp(other["logprob"]) for other in token["top_logprobs"]]
        parts = [*known, max(0.0, 1.0 - sum(known))]
        entropies.append(-sum(p * math.log(p) for p in parts if p > 0.0) / math.log(len(parts)))
    answer = Answer.from_openai(raw)
    assert named_score("mean_token_probability")(answer) == pytest.approx(1.0 - probability, abs=1e-9)
    assert named_score("perplexity")(answer) == pytest.approx(perplexity, abs=1e-9)
    assert named_score("entropy", top=5)(answer) == pytest.approx(sum(entropies) / len(entropies), abs=1e-6)
