"""Ask the local model held-out questions and print its accuracy: the figures of the model card."""

import argparse
import json
import math
import sys
import urllib.request
from collections.abc import Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from bpac.local.questions import KINDS, held_out_questions
from bpac.local.server import MODEL, LocalServer
from bpac.local.worked_question import WorkedQuestion


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


def ask(base_url: str, text: str, thinking: bool, **more: Any) -> dict[str, Any]:
    """The server's response to a chat completion request with log-probabilities."""
    body = {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 400,
        "temperature": 0,
        "logprobs": True,
        "chat_template_kwargs": {"enable_thinking": thinking},
        **more,
    }
    request = urllib.request.Request(
        f"{base_url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120.0) as response:
        found: dict[str, Any] = json.loads(response.read())
    return found


def replies(base_url: str, questions: Sequence[WorkedQuestion], thinking: bool, at_once: int) -> list[Reply]:
    """The replies to all questions.

    Parameters
    ----------
    base_url: the base URL of the server.
    questions: the questions.
    thinking: whether the model thinks first.
    at_once: number of concurrent requests.
    """

    def reply(question: WorkedQuestion) -> Reply:
        body = ask(base_url, question.text, thinking)
        choice = body["choices"][0]
        probabilities = [math.exp(token["logprob"]) for token in choice["logprobs"]["content"]]
        return Reply(
            question,
            choice["message"]["content"] == question.answer,
            body["usage"]["completion_tokens"],
            1.0 - sum(probabilities) / len(probabilities),
        )

    with ThreadPoolExecutor(at_once) as pool:
        label = "thinking" if thinking else "direct"
        return list(tqdm(pool.map(reply, questions), total=len(questions), desc=label))


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


def summary(direct: Sequence[Reply], thinking: Sequence[Reply]) -> dict[str, Any]:
    """The figures of the model card."""
    return {
        "questions": len(direct),
        "direct": share(direct),
        "direct_easy": share(direct, lambda answer: is_easy(answer.question)),
        "thinking": share(thinking),
        "thinking_easy": share(thinking, lambda answer: is_easy(answer.question)),
        "auroc": auroc(direct),
        "direct_tokens": sum(answer.tokens for answer in direct) / len(direct),
        "thinking_tokens": sum(answer.tokens for answer in thinking) / len(thinking),
    }


def table(direct: Sequence[Reply], thinking: Sequence[Reply]) -> str:
    """The accuracy in percent, direct → thinking, by kind and size, as a Markdown table."""

    def both(kind: str, sizes: Container[int]) -> str:
        def fits(answer: Reply) -> bool:
            return answer.question.kind == kind and answer.question.difficulty in sizes

        shares = [share(answers, fits) for answers in (direct, thinking)]
        return " → ".join("–" if math.isnan(value) else f"{100.0 * value:.0f}" for value in shares)

    rows = ["| kind | all | by size |", "| --- | --- | --- |"]
    for name, kind in KINDS.items():
        by_size = ", ".join(f"{size}: {both(name, (size,))}" for size in kind.sizes)
        rows.append(f"| {name} | {both(name, kind.sizes)} | {by_size} |")
    return "\n".join(rows)


def main() -> None:
    """Ask the questions and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2400, help="number of questions (default: 2400)")
    parser.add_argument("--seed", type=int, default=20, help="random seed of the questions (default: 20)")
    model = "GGUF file of the model (default: the model in the package)"
    parser.add_argument("--model", type=Path, default=MODEL, metavar="FILE", help=model)
    parser.add_argument("--slots", type=int, default=8, help="number of concurrent requests (default: 8)")
    options = parser.parse_args()
    questions = held_out_questions(options.count, options.seed)
    with LocalServer(model=options.model, slots=options.slots) as server:
        direct = replies(server.base_url, questions, thinking=False, at_once=options.slots)
        thinking = replies(server.base_url, questions, thinking=True, at_once=options.slots)
    sys.stdout.write(f"{table(direct, thinking)}\n\n{json.dumps(summary(direct, thinking))}\n")


if __name__ == "__main__":
    main()
