"""Judges on pairs of answers with a known preference: which ones agree better than chance, and which do not."""

import asyncio
import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.errors import InputError, Refused
from bpac.grader_accuracy.judge_agreement import BETTER_THAN_CHANCE, TOO_WEAK, JudgeAgreement, JudgedPair, PairOutcome
from bpac.grader_accuracy.measure_judge import measure_judge, measurement_key
from bpac.grader_accuracy.preference_pairs import preference_pairs
from bpac.grading.judge import judge_messages
from bpac.models.client import ModelClient
from bpac.models.judging import Judge
from bpac.testing import Reply, Request, ScriptedServer

PAIRS = preference_pairs()
BETTER = {pair.better for pair in PAIRS}
# Gives a mark to an answer, as a text.
Marking = Callable[[str], str]


def answer_in(request: Request) -> str:
    """The answer that a request asks to mark."""
    found = re.search(r"<answer (\w+)>\n(.*)\n</answer \1>", request.question, flags=re.DOTALL)
    assert found is not None
    return found[2]


def measured(marking: Marking, concurrency: int = 1) -> tuple[JudgeAgreement, ScriptedServer]:
    """The agreement of a judge that marks answers in this way, and its server."""

    async def run(base_url: str) -> JudgeAgreement:
        async with ModelClient(base_url, "scripted") as client:
            return await measure_judge(Judge(client), "scripted", concurrency=concurrency)

    with ScriptedServer(lambda request: Reply(marking(answer_in(request)))) as server:
        return asyncio.run(run(server.base_url)), server


def perfect(answer: str) -> str:
    """Higher marks for the better answers."""
    return "9" if answer in BETTER else "2"


def test_the_built_in_pairs_are_usable() -> None:
    """There are 40 different questions with ten faults of the worse answer, and every ten pairs have all of them."""
    assert len({pair.question for pair in PAIRS}) == len(PAIRS) == 40
    assert len({text for pair in PAIRS for text in (pair.better, pair.worse)}) == 80
    assert all(text.strip() for pair in PAIRS for text in (pair.question, pair.better, pair.worse))
    for start in range(0, 40, 10):
        ten = PAIRS[start : start + 10]
        assert len({pair.fault for pair in ten}) == 10
        assert sum(len(pair.worse) > len(pair.better) for pair in ten) == 5


def test_a_perfect_judge_agrees() -> None:
    """It agrees on every pair, in both orders, and no verdict changes."""
    found, server = measured(perfect, concurrency=4)
    assert (found.pairs, found.answered, found.agreed, found.unreadable) == (40, 40, 40, 0)
    assert (found.agreement, found.changed_share, found.verdict) == (1.0, 0.0, BETTER_THAN_CHANCE)
    assert found.interval[0] == pytest.approx(0.025 ** (1 / 40))
    assert found.interval[1] == 1.0
    assert len(server.requests) == 4 * 40
    assert found.by_fault()["rude"] == {"pairs": 4, "answered": 4, "agreed": 4}


def test_the_prompt_of_the_result_is_the_one_that_is_sent() -> None:
    """With question, answer and code inserted, it is literally what the server receives."""
    found, server = measured(perfect)
    request = server.requests[0]
    code = request.question.partition("<request ")[2].partition(">")[0]
    values = {"{question}": PAIRS[0].question, "{answer}": answer_in(request), "{code}": code}
    shown = [dict(message) for message in found.prompt]
    for message in shown:
        for name, value in values.items():
            message["content"] = message["content"].replace(name, value)
    assert request.body["messages"] == shown
    assert request.body["messages"] == judge_messages(PAIRS[0].question, answer_in(request), code)


def test_a_judge_that_prefers_the_first_answer_is_too_weak() -> None:
    """Every verdict changes with the order, so none of them is an agreement."""
    seen: list[str] = []

    def first_wins(answer: str) -> str:
        # The two requests of a judgement may arrive in any order, so the draft is found by its text.
        judgement = len(seen) // 2
        pair = PAIRS[judgement // 2]
        seen.append(answer)
        return "9" if answer == (pair.worse if judgement % 2 else pair.better) else "2"

    found, _ = measured(first_wins)
    assert (found.answered, found.agreed, found.changed_share) == (40, 0, 1.0)
    assert found.verdict == TOO_WEAK


def test_a_judge_with_one_mark_for_everything_is_too_weak() -> None:
    """Ties are not agreement."""
    found, _ = measured(lambda _: "7", concurrency=4)
    assert found.outcomes == Counter({PairOutcome.TIES: 40})
    assert (found.agreement, found.verdict) == (0.0, TOO_WEAK)


@pytest.mark.parametrize("seed", range(3))
def test_a_judge_that_marks_at_random_is_too_weak(seed: int) -> None:
    """Random marks change from one request to the next."""
    rng = random.Random(seed)
    found, _ = measured(lambda _: str(rng.randint(1, 10)))
    assert found.verdict == TOO_WEAK
    assert found.changed_share is not None
    assert found.changed_share > 0.2


@pytest.mark.parametrize(
    "marking",
    [
        lambda answer: str(1 + zlib.crc32(answer.encode()) % 10),
        lambda answer: f"{1 + min(len(answer), 300) / 300 * 9:.2f}",
        lambda answer: f"{10 - min(len(answer), 300) / 300 * 9:.2f}",
    ],
    ids=["hash", "longer is better", "shorter is better"],
)
def test_a_consistent_judge_that_does_not_understand_is_too_weak(marking: Marking) -> None:
    """Its verdicts never change with the order, but they agree with the known preferences only by chance."""
    found, _ = measured(marking, concurrency=4)
    assert (found.answered, found.changed_share) == (40, 0.0)
    assert found.verdict == TOO_WEAK
    assert 0.2 < (found.agreement or 0.0) < 0.7


def test_a_judge_that_obeys_the_answers_fails_on_those() -> None:
    """Answers that state their own mark are counted separately from the other faults."""
    found, _ = measured(lambda answer: "10" if "10" in answer else perfect(answer), concurrency=4)
    assert found.by_fault()["states its own mark"]["agreed"] == 0
    assert (found.agreed, found.verdict) == (36, BETTER_THAN_CHANCE)


def test_replies_without_a_mark_are_unreadable() -> None:
    """They count neither for nor against the judge; without any mark there is no agreement."""
    found, _ = measured(lambda answer: "Hm." if "10" in answer else perfect(answer), concurrency=4)
    assert (found.pairs, found.answered, found.unreadable, found.agreement) == (40, 36, 4, 1.0)
    nothing, server = measured(lambda _: "A fine answer.", concurrency=4)
    assert (nothing.answered, nothing.agreement, nothing.changed_share) == (0, None, None)
    assert (nothing.interval, nothing.verdict) == ((0.0, 1.0), TOO_WEAK)
    assert len(server.requests) >= 3 * 40


@pytest.mark.parametrize(("agreed", "verdict"), [(26, TOO_WEAK), (27, BETTER_THAN_CHANCE)])
def test_the_rule_is_the_lower_bound_of_the_interval(agreed: int, verdict: str) -> None:
    """Of 40 pairs, 27 are the fewest whose exact 95 % interval lies above one half."""
    right, wrong = JudgedPair("rude", ((9, 1), (9, 1))), JudgedPair("rude", ((1, 9), (1, 9)))
    found = JudgeAgreement("m", (), (right,) * agreed + (wrong,) * (40 - agreed))
    assert found.verdict == verdict
    assert found.outcomes[PairOutcome.DISAGREES] == 40 - agreed


@pytest.mark.parametrize(
    ("marks", "outcome"),
    [(((9, 1), (1, 1)), "changes"), (((9, 1), (1, 9)), "changes"), (((5, 5), (6, 6)), "ties"),
     (((2, 3), (4, 5)), "disagrees"), (((3, 2), (5, 4)), "agrees"), (None, "unreadable")],
)  # fmt: skip
def test_two_orders_make_one_outcome(
    marks: tuple[tuple[float, float], tuple[float, float]] | None, outcome: str
) -> None:
    """Only a verdict that both orders share is one."""
    assert JudgedPair("rude", marks).outcome == outcome


def test_a_result_is_the_same_after_json() -> None:
    """It can be saved, and the key of a saved result changes with all that the result depends on."""
    found, _ = measured(lambda answer: "Hm." if "10" in answer else perfect(answer), concurrency=4)
    assert JudgeAgreement.from_json(json.loads(json.dumps(found.to_json()))) == found
    unusable: list[Any] = [None, [], {"model": "m"}, found.to_json() | {"judged": [{"fault": 1, "marks": "x"}]}]
    for wrong in unusable:
        with pytest.raises(InputError, match="not the measured agreement"):
            JudgeAgreement.from_json(wrong)
    keys = {measurement_key("m", PAIRS), measurement_key("n", PAIRS), measurement_key("m", PAIRS[:24]),
            measurement_key("m", PAIRS, {"temperature": 0})}  # fmt: skip
    assert len(keys) == 4


def test_a_server_that_fails_is_an_error() -> None:
    """It says nothing about the model, so there is no result."""

    async def run(base_url: str) -> None:
        async with ModelClient(base_url, "scripted") as client:
            await measure_judge(Judge(client), "scripted")

    with ScriptedServer(Reply("no such model", status=404)) as server, pytest.raises(Refused, match="no such model"):
        asyncio.run(run(server.base_url))
    with pytest.raises(InputError, match="at least one pair"):
        asyncio.run(measure_judge(Judge(ModelClient("http://127.0.0.1", "m")), "m", ()))


def test_the_command_measures_a_judge(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the verdict as text or JSON; the exit code is 1 if the judge is too weak."""
    with ScriptedServer(lambda request: Reply(perfect(answer_in(request)))) as server:
        judge = ["graders", "--judge-url", server.base_url, "--judge-model", "scripted"]
        assert main([*judge, "--judge-body", '{"temperature": 0}', "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["verdict"], report["agreement"], report["pairs"]) == (BETTER_THAN_CHANCE, 1.0, 40)
        assert (report["model"], report["body"]) == ("scripted", {"temperature": 0})
        assert main([*judge, "--pairs", "10"]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"scripted {BETTER_THAN_CHANCE}\n")
        assert "better answer: 10 of 10 pairs, 100.0% (95 % confidence interval 69.2% to 100.0%; chance 50 %)" in text
        assert "| rude | 1 | 1 | 1 |" in text
        server.script = lambda _: Reply("I cannot say.")
        assert main([*judge, "--pairs", "5"]) == 1
        text = capsys.readouterr().out
        assert text.startswith(f"scripted is {TOO_WEAK}\n")
        assert "no readable mark: 5 of 5 pairs" in text


@pytest.mark.parametrize(
    ("options", "error"),
    [(["--judge-url", "http://127.0.0.1:9/v1"], "both --judge-url and --judge-model"),
     (["--judge-url", "http://127.0.0.1:9/v1", "--judge-model", "m", "--grader", "final"], "are for graders"),
     (["--judge-url", "nowhere", "--judge-model", "m"], "--judge-url")],
)  # fmt: skip
def test_wrong_options_of_a_judge_are_one_line(
    options: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong option is named in one line on standard error, and the exit code is 2."""
    assert main(["graders", *options]) == 2
    printed = capsys.readouterr().err
    assert error in printed
    assert printed.count("\n") == 1
