"""Ask the local model held-out questions and print its accuracy: the figures of the model card."""

import argparse
import json
import math
import sys
import urllib.request
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from bpac.answer import Answer
from bpac.local.answer_modes import MODES, AnswerMode
from bpac.local.questions import KINDS, held_out_questions
from bpac.local.server import MODEL, LocalServer
from bpac.local.worked_question import WorkedQuestion
from bpac.wire.completions import read_completion


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a question.

    Parameters
    ----------
    question: the question.
    right: whether the answer is correct.
    tokens: number of generated tokens.
    uncertainty: 1 − mean token probability.
    """

    question: WorkedQuestion
    right: bool
    tokens: int
    uncertainty: float


def ask(base_url: str, text: str, mode: AnswerMode) -> Answer:
    """The answer to a question, with log-probabilities."""
    body = {"messages": mode.messages(text), **mode.method.request, **mode.body(), "logprobs": True}
    request = urllib.request.Request(
        f"{base_url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120.0) as response:
        return read_completion(response.read()).answer


def replies(base_url: str, questions: Sequence[WorkedQuestion], mode: AnswerMode, at_once: int) -> list[Reply]:
    """The replies to all questions.

    Parameters
    ----------
    base_url: the base URL of the server.
    questions: the questions.
    mode: the mode in which the model answers.
    at_once: number of concurrent requests.
    """

    def reply(question: WorkedQuestion) -> Reply:
        answer = ask(base_url, question.text, mode)
        probabilities = [math.exp(token.logprob) for token in answer.tokens or ()]
        return Reply(
            question,
            answer.text.strip() == question.answer,
            answer.completion_tokens,
            1.0 - sum(probabilities) / len(probabilities),
        )

    with ThreadPoolExecutor(at_once) as pool:
        return list(tqdm(pool.map(reply, questions), total=len(questions), desc=mode.name))


def auroc(answers: Sequence[Reply]) -> float:
    """The probability that a wrong answer is more uncertain than a correct one; ties count half.

    >>> question = held_out_questions(1, seed=1)[0]
    >>> auroc([Reply(question, True, 1, 0.1), Reply(question, False, 1, 0.3), Reply(question, True, 1, 0.3)])
    0.75
    """
    wrong = [answer.uncertainty for answer in answers if not answer.right]
    right = [answer.uncertainty for answer in answers if answer.right]
    wins = sum((bad > good) + 0.5 * (bad == good) for bad in wrong for good in right)
    return wins / (len(wrong) * len(right))


def share(answers: Sequence[Reply], fits: Callable[[Reply], bool] = lambda _: True) -> float:
    """The share of correct answers among those that fit a condition."""
    chosen = [answer.right for answer in answers if fits(answer)]
    return sum(chosen) / len(chosen) if chosen else math.nan


def is_easy(question: WorkedQuestion) -> bool:
    """Whether the size of a question is in the smallest third of the sizes of its kind."""
    kind = KINDS[question.kind]
    return 3 * (question.difficulty + 1 - kind.easiest) <= len(kind.sizes)


def loss(answers: Sequence[Reply], expert: Sequence[Reply]) -> float:
    """The share of questions that the expert answers correctly and the other mode does not."""
    lost = [best.right and not answer.right for answer, best in zip(answers, expert, strict=True)]
    return sum(lost) / len(lost)


def mean_tokens(answers: Sequence[Reply]) -> float:
    """The mean number of generated tokens."""
    return sum(answer.tokens for answer in answers) / len(answers)


def summary(found: Mapping[str, Sequence[Reply]]) -> dict[str, Any]:
    """The figures of the model card, by mode."""
    expert = found["thinking"]
    return {
        "questions": len(expert),
        "auroc": auroc(found["direct"]),
        **{
            name: {
                "correct": share(answers),
                "correct_easy": share(answers, lambda answer: is_easy(answer.question)),
                "loss": loss(answers, expert),
                "tokens": mean_tokens(answers),
                "token_ratio": mean_tokens(answers) / mean_tokens(expert),
            }
            for name, answers in found.items()
        },
    }


def overview(found: Mapping[str, Sequence[Reply]]) -> str:
    """The figures of all modes as a Markdown table."""
    figures = summary(found)
    words = {
        "correct": "correct",
        "correct_easy": "correct, smallest third of sizes",
        "loss": "loss: the expert is correct and this answer is not",
    }
    rows = [
        f"| {figures['questions']:,} held-out questions | {' | '.join(found)} |",
        f"| --- |{' --- |' * len(found)}",
        *(_row(text, [f"{100.0 * figures[mode][name]:.1f} %" for mode in found]) for name, text in words.items()),
        _row("tokens per answer", [f"{figures[mode]['tokens']:.1f}" for mode in found]),
        _row("tokens relative to the expert", [f"{100.0 * figures[mode]['token_ratio']:.0f} %" for mode in found]),
    ]
    return "\n".join(rows)


def table(found: Mapping[str, Sequence[Reply]]) -> str:
    """The accuracy in percent by kind, for every mode, and by size, direct → thinking, as a Markdown table."""

    def percent(mode: str, kind: str, sizes: Container[int]) -> str:
        def fits(answer: Reply) -> bool:
            return answer.question.kind == kind and answer.question.difficulty in sizes

        value = share(found[mode], fits)
        return "–" if math.isnan(value) else f"{100.0 * value:.0f}"

    rows = [_row("kind", [*found, "by size, direct → thinking"]), f"| --- |{' --- |' * (len(found) + 1)}"]
    for name, kind in KINDS.items():
        by_size = ", ".join(
            f"{size}: {' → '.join(percent(mode, name, (size,)) for mode in ('direct', 'thinking'))}"
            for size in kind.sizes
        )
        rows.append(_row(name, [*(percent(mode, name, kind.sizes) for mode in found), by_size]))
    return "\n".join(rows)


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Ask the questions and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2400, help="number of questions (default: 2400)")
    parser.add_argument("--seed", type=int, default=21, help="random seed of the questions (default: 21)")
    model = "GGUF file of the model (default: the model in the package)"
    parser.add_argument("--model", type=Path, default=MODEL, metavar="FILE", help=model)
    parser.add_argument("--slots", type=int, default=8, help="number of concurrent requests (default: 8)")
    options = parser.parse_args()
    questions = held_out_questions(options.count, options.seed)
    with LocalServer(model=options.model, slots=options.slots) as server:
        found = {name: replies(server.base_url, questions, mode, at_once=options.slots) for name, mode in MODES.items()}
    sys.stdout.write(f"{overview(found)}\n\n{table(found)}\n\n{json.dumps(summary(found))}\n")


if __name__ == "__main__":
    main()
