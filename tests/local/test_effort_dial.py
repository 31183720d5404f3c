"""The effort dial for real: the local model with no, short and long thinking, as a cascade behind the gateway."""

import json
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bpac.errors import InputError
from bpac.local.answer_modes import MODES
from bpac.local.efforts import CALL_PRICES, EFFORTS, effort_body, effort_models
from bpac.local.prompting import SLOTS
from bpac.local.questions import held_out_questions
from bpac.local.server import LocalServer
from bpac.routing.coins import SeededCoins
from tests.gateway.games.test_tickets import router_of
from tests.gateway.raw import Got, post
from tests.gateway.running import RunningGateway

pytest.importorskip("xllamacpp")
QUESTIONS = 240


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


def test_a_caller_who_sends_auto_gets_the_least_effort_that_is_certified(local: LocalServer) -> None:
    """Answers without thinking are served once they are certified; other efforts are answered as asked."""
    models = effort_models(local.base_url)
    # Without thinking 27 % of all answers differ from those with it: more than this limit, which takes few questions
    # to certify.
    route = {"models": list(models), "epsilon": 0.2, "call_prices": list(CALL_PRICES)}
    gateway_settings = {"listen": "127.0.0.1:0", "store": "memory://", "probe": False}
    questions = held_out_questions(QUESTIONS, 2)
    with RunningGateway({"gateway": gateway_settings, "models": models, "routes": {"homework": route}}) as gateway:
        router_of(gateway)._proposals._coins = SeededCoins(1)

        def ask(text: str, effort: str = "auto") -> Got:
            body = {"model": "homework", "messages": [{"role": "user", "content": text}]}
            return post(gateway.url, body | {"reasoning_effort": effort})

        with ThreadPoolExecutor(SLOTS) as threads:
            replies = list(threads.map(ask, [question.text for question in questions]))
        chosen = ask(questions[0].text, "low")
        gateway.idle()
        status = gateway.status()
    assert {got.status for got in replies} == {200}
    answered = Counter(got.headers["x-bpac-model"] for got in replies)
    # The order in which the threads' questions arrive differs from run to run: 52 to 100 were seen.
    assert answered["effort-none"] >= 20
    assert {stage["model"]: stage["answered"] for stage in status["stages"]} == {
        name: answered[name] for name in models
    }
    right = [
        got.json["choices"][0]["message"]["content"].strip() == question.answer
        for got, question in zip(replies, questions, strict=True)
    ]
    # 97 % with thinking, 73 % without.
    assert sum(right) / QUESTIONS >= 0.85
    assert (chosen.status, chosen.headers["x-bpac-decision"]) == (200, "effort")
    assert (status["steps"], status["owed"], status["forfeits"]) == (QUESTIONS, 0, {})
