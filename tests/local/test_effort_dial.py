"""The effort dial for real: the local model with no, short and long thinking, as a cascade behind the gateway."""

import json
import urllib.request
from typing import Any

import pytest

from bpac.errors import InputError
from bpac.local.answer_modes import MODES
from bpac.local.efforts import CALL_PRICES, EFFORTS, effort_body, effort_models
from bpac.local.questions import held_out_questions
from bpac.local.server import LocalServer
from tests.gateway.raw import post
from tests.gateway.running import RunningGateway

pytest.importorskip("xllamacpp")


def completion(server: LocalServer, messages: list[Any], **more: Any) -> tuple[str, int]:
    """Answer and number of generated tokens."""
    body = {"model": "bpac-local", "messages": messages, "temperature": 0.0, "max_tokens": 400, **more}
    request = urllib.request.Request(
        f"{server.base_url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        found = json.load(response)
    return found["choices"][0]["message"]["content"], found["usage"]["completion_tokens"]


def test_efforts_are_the_modes_that_the_model_was_trained_in() -> None:
    """No effort is the direct answer, low effort the short steps, high effort thinking; each takes longer."""
    question = held_out_questions(1, 1)[0].text
    messages = [{"role": "user", "content": question}]
    with LocalServer() as server:
        found = {effort: completion(server, messages, **effort_body(effort)) for effort in EFFORTS}
        for effort, mode in (("none", "direct"), ("low", "chain-of-draft"), ("high", "thinking")):
            expected = completion(server, list(MODES[mode].messages(question)), **MODES[mode].body())
            assert found[effort] == expected
    tokens = [count for _, count in found.values()]
    assert tokens == sorted(tokens)
    with pytest.raises(InputError, match="effort must be one of"):
        effort_body("huge")


def test_a_caller_who_sends_auto_gets_the_dial() -> None:
    """With ``reasoning_effort: auto`` efforts are tried in order; another effort is answered by its model."""
    with LocalServer() as server:
        models = effort_models(server.base_url)
        config = {
            "gateway": {"listen": "127.0.0.1:0", "store": "memory://", "probe": False},
            "models": models,
            "routes": {
                "homework": {
                    "models": list(models),
                    "epsilon": 0.2,
                    "score": "perplexity",
                    "call_prices": list(CALL_PRICES),
                }
            },
        }
        questions = [question.text for question in held_out_questions(40, 2)]
        with RunningGateway(config) as gateway:
            for text in questions:
                ask = {"model": "homework", "messages": [{"role": "user", "content": text}]}
                got = post(gateway.url, ask | {"reasoning_effort": "auto"})
                assert got.status == 200
                assert got.headers["x-bpac-model"] in models
            chosen = post(gateway.url, ask | {"reasoning_effort": "low"})
            assert (chosen.status, chosen.headers["x-bpac-decision"]) == (200, "effort")
            gateway.idle()
            status = gateway.status()
            assert status["steps"] == len(questions)
            assert sum(stage["answered"] for stage in status["stages"]) == len(questions)
            assert status["owed"] == 0
            assert status["forfeits"] == {}
