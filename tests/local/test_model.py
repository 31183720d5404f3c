"""The model in this package, asked over HTTP as any client would ask it."""

import json
import math
import re
from itertools import islice

import pytest
from scripts.measure_local_model import Reply, auroc, is_easy, replies, share

from bpac.local import vocabulary
from bpac.local.questions import KINDS, held_out_questions, training_questions
from bpac.local.server import MODEL, LocalServer
from tests.local.chat import chat, post

QUESTIONS = held_out_questions(720, seed=30)


@pytest.fixture(scope="module")
def direct(local: LocalServer) -> list[Reply]:
    """Answers without thinking."""
    return replies(local.base_url, QUESTIONS, thinking=False, at_once=8)


@pytest.fixture(scope="module")
def thinking(local: LocalServer) -> list[Reply]:
    """Answers after thinking."""
    return replies(local.base_url, QUESTIONS, thinking=True, at_once=8)


def test_thinking_helps(direct: list[Reply], thinking: list[Reply]) -> None:
    """On held-out questions, thinking is right at least 15 points more often, and nearly always."""
    assert share(thinking) >= share(direct) + 0.15
    assert share(thinking) >= 0.9


def test_most_easy_questions_need_no_thinking(direct: list[Reply]) -> None:
    """Direct answers are right on most easy questions, and more often there than on hard ones."""
    easy = share(direct, lambda reply: is_easy(reply.question))
    assert easy > 0.5
    assert easy > share(direct, lambda reply: not is_easy(reply.question))


def test_uncertainty_knows_errors(direct: list[Reply]) -> None:
    """1 − mean token probability tells wrong direct answers from right ones: AUROC of at least 0.75."""
    assert auroc(direct) >= 0.75


def test_thinking_costs(direct: list[Reply], thinking: list[Reply]) -> None:
    """Thinking takes several times the tokens."""
    assert sum(reply.tokens for reply in thinking) > 4 * sum(reply.tokens for reply in direct)


def test_tokens_agree(local: LocalServer) -> None:
    """llama.cpp cuts 1,000 chats into the very tokens the model was trained on, steps and answers included."""
    for number, question in enumerate(islice(training_questions(seed=9), 1_000)):
        on = number % 2 == 0
        _, prompt = post(f"{local.address}/apply-template", chat(question.text, on))
        reply = vocabulary.encode_reply(question.steps, question.answer, on)
        body = {"content": prompt["prompt"] + vocabulary.decode(reply), "parse_special": True, "add_special": True}
        _, found = post(f"{local.address}/tokenize", body)
        assert found["tokens"] == vocabulary.encode_prompt(question.text, on) + reply


@pytest.mark.parametrize("text", ["", "naïve café ✓", "a\n\n  b\t'll 1234"])
def test_any_text_has_tokens(local: LocalServer, text: str) -> None:
    """Text unlike any question is cut into its bytes."""
    _, found = post(f"{local.address}/tokenize", {"content": text})
    assert found["tokens"] == vocabulary.encode(text)


def test_a_thought_is_told_from_an_answer(local: LocalServer) -> None:
    """The server returns thoughts apart from answers; with thinking off there is none; unasked, the model thinks."""
    question = held_out_questions(1, seed=31, kind="addition")[0]
    url = f"{local.base_url}/chat/completions"
    thought, silent, unasked = (
        post(url, chat(question.text, on))[1]["choices"][0]["message"] for on in (True, False, None)
    )
    assert re.fullmatch(r"[\d+=;]+", thought["reasoning_content"])
    assert thought["content"].isdigit()
    assert not silent.get("reasoning_content")
    assert silent["content"].isdigit()
    assert unasked == thought


def test_every_kind_is_answered_after_thinking(thinking: list[Reply]) -> None:
    """No kind of question is beyond the model: each is right more often than not."""
    for kind in KINDS:
        assert share(thinking, lambda reply, kind=kind: reply.question.kind == kind) > 0.5  # type: ignore[misc]


def test_uncertainty_is_a_fraction(direct: list[Reply]) -> None:
    """Every uncertainty is in [0, 1) and they are not all alike."""
    assert all(0.0 <= reply.uncertainty < 1.0 for reply in direct)
    assert len({reply.uncertainty for reply in direct}) > len(direct) / 4
    assert not any(math.isnan(reply.uncertainty) for reply in direct)


def test_the_file_is_small() -> None:
    """The model has at most 20 MB, and its card is beside it."""
    assert MODEL.stat().st_size <= 20_000_000
    assert MODEL.with_name("MODEL_CARD.md").is_file()


def test_the_log_is_that_of_one_whole_run() -> None:
    """The log begins with the settings, and its looks at held-out questions go on to the last step."""
    lines = MODEL.with_name("training.jsonl").read_text(encoding="utf-8").splitlines()
    settings, *rows = map(json.loads, lines)
    steps = [row["step"] for row in rows]
    assert steps == sorted(set(steps))
    assert steps[-1] == settings["steps"]
    assert settings["torch"].startswith("2.13.0")
    assert rows[-1]["seconds"] <= 2 * 60 * 60
