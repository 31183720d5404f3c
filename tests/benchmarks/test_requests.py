"""Requests to a model: prompting methods and sampling settings."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bpac.answer import Answer, split_reasoning
from bpac.benchmarks.benchmark import Message, Question
from bpac.benchmarks.competition_math import MATH
from bpac.benchmarks.prompting import METHODS, named_method
from bpac.benchmarks.registry import BENCHMARKS
from bpac.benchmarks.sampling import INSTRUCT, SAMPLINGS, THINKING
from bpac.errors import InputError

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
ASKED: list[Message] = [{"role": "user", "content": "1 + 1?"}]


def test_the_sampling_settings_are_those_of_the_paper() -> None:
    """Both models are sampled as in the paper."""
    settings = {
        model: (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p)
        for model, sampling in SAMPLINGS.items()
    }
    assert settings == {
        "Qwen/Qwen3-4B-Instruct-2507": (0.7, 0.8, 20, 0.0),
        "Qwen/Qwen3-4B-Thinking-2507": (0.6, 0.95, 20, 0.0),
    }


@pytest.mark.parametrize("method", METHODS)
def test_a_request_body_is_json_and_asks_for_log_probabilities(method: str) -> None:
    """A request body can be sent without changes, and the answer can be scored."""
    body = json.loads(json.dumps(THINKING.body(ASKED, named_method(method), top_logprobs=5)))
    assert body["model"] == THINKING.model
    assert body["logprobs"] is True
    assert body["top_logprobs"] == 5
    assert "top_logprobs" not in INSTRUCT.body(ASKED)


def test_direct_prompting_changes_nothing() -> None:
    """``direct`` and ``plain`` send the messages without changes."""
    assert named_method("plain") is named_method("direct")
    assert named_method("direct").apply(ASKED) == ASKED
    assert not named_method("direct").request


def test_chain_of_draft_asks_for_short_steps() -> None:
    """One system message asks for at most five words per step, and the question does not change."""
    first, *rest = named_method("chain_of_draft").apply(ASKED)
    assert first["role"] == "system"
    assert "five words" in first["content"]
    assert rest == ASKED
    with_system = [{"role": "system", "content": "Be kind."}, *ASKED]
    assert [message["role"] for message in named_method("chain-of-draft").apply(with_system)] == ["system", "user"]


def test_nothinking_begins_the_answer_with_finished_reasoning() -> None:
    """The model continues after reasoning that is already finished, so the continuation is its answer."""
    method = named_method("nothinking")
    last = method.apply(ASKED)[-1]
    assert last["role"] == "assistant"
    reasoning, answer = split_reasoning(last["content"] + "2")
    assert reasoning
    assert answer == "2"
    assert method.request == {"add_generation_prompt": False, "continue_final_message": True}


def test_a_method_does_not_modify_its_input() -> None:
    """The same messages can be used with every method."""
    for method in METHODS.values():
        method.apply(ASKED)
    assert ASKED == [{"role": "user", "content": "1 + 1?"}]


def test_the_error_for_an_unknown_method_lists_the_known_ones() -> None:
    """The error names every method."""
    with pytest.raises(InputError, match="'tree' is not known; use one of direct, chain-of-draft, nothinking"):
        named_method("tree")


def test_an_answer_that_ran_out_of_tokens_is_unknown() -> None:
    """An answer that reached the token limit without a result is not wrong but unknown."""
    question = Question("1", "1 + 1?", "2")
    assert MATH.grade_answer(question, Answer("We add", finish_reason="length")) is None
    assert MATH.grade_answer(question, Answer("We add", finish_reason="stop")) is False
    assert MATH.grade_answer(question, Answer("\\boxed{2}")) is True


def test_docs_benchmarks_is_complete_and_its_code_runs() -> None:
    """docs/benchmarks.md names every benchmark, model and method, and its Python code runs."""
    page = PAGE.read_text(encoding="utf-8")
    for name in (*BENCHMARKS, *SAMPLINGS, *METHODS, *(benchmark.source.dataset for benchmark in BENCHMARKS.values())):
        assert name in page
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        ran = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
