"""The model in this package, asked over HTTP."""

import json
import math
import re
from itertools import islice

import pytest
from scripts.measure_local_model import Reply, auroc, is_easy, replies, share

from bpac.local import vocabulary
from bpac.local.answer_modes import MODES, AnswerMode
from bpac.local.questions import KINDS, held_out_questions, training_questions
from bpac.local.server import MODEL, LocalServer
from tests.local.chat import chat, post

QUESTIONS = held_out_questions(360, seed=30)


def trained_prompt(mode: AnswerMode, text: str) -> list[int]:
    """The prompt of the training text as llama.cpp writes it: a message that is continued follows empty reasoning."""
    messages = mode.messages(text)
    return vocabulary.encode_prompt(messages, mode.thinking and messages[-1]["role"] != "assistant")


@pytest.fixture(scope="module")
def direct(local: LocalServer) -> list[Reply]:
    """Answers without thinking."""
    return replies(local.base_url, QUESTIONS, MODES["direct"], at_once=8)


@pytest.fixture(scope="module")
def thinking(local: LocalServer) -> list[Reply]:
    """Answers after thinking."""
    return replies(local.base_url, QUESTIONS, MODES["thinking"], at_once=8)


def test_thinking_improves_accuracy(direct: list[Reply], thinking: list[Reply]) -> None:
    """On held-out questions, thinking raises the accuracy by at least 15 points, to at least 90 %."""
    assert share(thinking) >= share(direct) + 0.15
    assert share(thinking) >= 0.9


def test_most_easy_questions_need_no_thinking(direct: list[Reply]) -> None:
    """Direct answers are correct on most easy questions, and more often than on hard ones."""
    easy = share(direct, lambda reply: is_easy(reply.question))
    assert easy > 0.5
    assert easy > share(direct, lambda reply: not is_easy(reply.question))


def test_uncertainty_predicts_errors(direct: list[Reply]) -> None:
    """1 − mean token probability separates wrong from correct direct answers, with an AUROC of at least 0.75."""
    assert auroc(direct) >= 0.75


def test_thinking_needs_several_times_the_tokens(direct: list[Reply], thinking: list[Reply]) -> None:
    """Answers with thinking have more than four times as many tokens."""
    assert sum(reply.tokens for reply in thinking) > 4 * sum(reply.tokens for reply in direct)


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
def test_llama_cpp_and_training_use_the_same_tokens(local: LocalServer, mode: AnswerMode) -> None:
    """llama.cpp splits 250 chats, with reasoning and answers, into the tokens that the model was trained on."""
    for question in islice(training_questions(seed=9), 250):
        body = {"messages": mode.messages(question.text), **mode.method.request, **mode.body()}
        _, prompt = post(f"{local.address}/apply-template", body)
        reply = vocabulary.encode_reply(mode.reasoning and mode.reasoning(question), question.answer)
        text = {"content": prompt["prompt"] + vocabulary.decode(reply), "parse_special": True, "add_special": True}
        _, found = post(f"{local.address}/tokenize", text)
        assert found["tokens"] == trained_prompt(mode, question.text) + reply


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
def test_a_chat_completion_reads_the_prompt_of_the_training(local: LocalServer, mode: AnswerMode) -> None:
    """The server counts as many prompt tokens as a training text has before its reply."""
    text = held_out_questions(1, seed=32)[0].text
    body = {"messages": mode.messages(text), **mode.method.request, **mode.body()}
    _, found = post(f"{local.base_url}/chat/completions", body)
    assert found["usage"]["prompt_tokens"] == len(trained_prompt(mode, text))


@pytest.mark.parametrize("text", ["", "naïve café ✓", "a\n\n  b\t'll 1234"])
def test_any_text_is_split_into_its_bytes(local: LocalServer, text: str) -> None:
    """Texts that are not questions are split into bytes as well."""
    _, found = post(f"{local.address}/tokenize", {"content": text})
    assert found["tokens"] == vocabulary.encode(text)


def test_reasoning_is_separate_from_the_answer(local: LocalServer) -> None:
    """The server returns reasoning in its own field; there is none with thinking off; the default is thinking on."""
    question = held_out_questions(1, seed=31, kind="addition")[0]
    url = f"{local.base_url}/chat/completions"
    with_thinking, without_thinking, by_default = (
        post(url, chat(question.text, on))[1]["choices"][0]["message"] for on in (True, False, None)
    )
    assert re.fullmatch(r"[\d+=;]+", with_thinking["reasoning_content"])
    assert with_thinking["content"].isdigit()
    assert not without_thinking.get("reasoning_content")
    assert without_thinking["content"].isdigit()
    assert by_default == with_thinking


def test_thinking_answers_most_questions_of_every_kind(thinking: list[Reply]) -> None:
    """In every kind of question, more than half of the answers are correct."""
    for kind in KINDS:
        assert share(thinking, lambda reply, kind=kind: reply.question.kind == kind) > 0.5  # type: ignore[misc]


def test_uncertainty_is_a_fraction(direct: list[Reply]) -> None:
    """Every uncertainty is in [0, 1), and they differ."""
    assert all(0.0 <= reply.uncertainty < 1.0 for reply in direct)
    assert len({reply.uncertainty for reply in direct}) > len(direct) / 4
    assert not any(math.isnan(reply.uncertainty) for reply in direct)


def test_the_file_is_small() -> None:
    """The model has at most 20 MB, and its model card is in the same folder."""
    assert MODEL.stat().st_size <= 20_000_000
    assert MODEL.with_name("MODEL_CARD.md").is_file()


def test_the_training_log_covers_a_complete_run() -> None:
    """The log begins with the settings, and its evaluations reach the last step."""
    lines = MODEL.with_name("training.jsonl").read_text(encoding="utf-8").splitlines()
    settings, *rows = map(json.loads, lines)
    steps = [row["step"] for row in rows]
    assert steps == sorted(set(steps))
    assert steps[-1] == settings["steps"]
    assert all(set(phase["shares"]) == set(MODES) for phase in settings["phases"])
    assert settings["torch"].startswith("2.13.0")
    assert rows[-1]["seconds"] <= 2 * 60 * 60
