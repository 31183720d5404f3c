"""Train the local model from scratch on the CPU: ``python -m scripts.train_local_model``.

This writes the model and its training log. It needs the extra ``train`` (torch and gguf).
"""

import argparse
import dataclasses
import json
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from torch.nn import functional
from tqdm import tqdm

from bpac.local import vocabulary
from bpac.local.questions import held_out_questions, training_questions
from bpac.local.worked_question import WorkedQuestion
from scripts.export_local_model import export
from scripts.local_model import Shape, Tensor, Weights, hidden_states, logits, new_weights
from scripts.muon import Muon

PACKAGE = Path(__file__).parents[1] / "src" / "bpac" / "local"
# Another seed than that of the final measurement, so that training is not tuned to the questions it is judged by.
EVALUATION_QUESTIONS = held_out_questions(220, seed=10)

# Share of texts with thinking. Direct answers are shorter: with this share each way gets about half of all tokens.
THINKING = 0.35


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Texts of similar length, padded, and a mask of the tokens that the model learns to predict."""

    ids: Tensor
    counted: Tensor


def batches(seed: int, tokens: int, pool: int = 8192) -> Iterator[Batch]:
    """An endless stream of batches; each question is answered directly or after thinking.

    Parameters
    ----------
    seed: random seed.
    tokens: approximate number of tokens in a batch, including padding.
    pool: number of texts that are sorted by length at a time, which reduces padding (default: 8192).
    """
    rng = random.Random(seed)
    questions = training_questions(seed)
    while True:
        texts = sorted(
            (_text(question, rng.random() < THINKING) for question in islice(questions, pool)),
            key=lambda text: len(text[0]),
        )
        made, start = [], 0
        for stop in range(1, pool + 1):
            if stop == pool or (stop + 1 - start) * len(texts[stop][0]) > tokens:
                made.append(_batch(texts[start:stop]))
                start = stop
        rng.shuffle(made)
        yield from made


def loss_of(weights: Weights, shape: Shape, batch: Batch) -> Tensor:
    """Mean cross-entropy of the tokens of the replies; the questions are not learned."""
    states = hidden_states(weights, shape, batch.ids[:, :-1])
    counted = batch.counted[:, 1:]
    return functional.cross_entropy(logits(weights, states[counted]), batch.ids[:, 1:][counted])


def exact_share(weights: Weights, shape: Shape, thinking: bool) -> float:
    """Share of evaluation questions on which greedy decoding gives exactly the trained reply.

    With thinking this is a lower bound: other steps can also lead to the correct answer.
    """
    texts = [_text(question, thinking) for question in EVALUATION_QUESTIONS]
    exact = 0
    with torch.no_grad():
        for start in range(0, len(texts), 100):
            batch = _batch(texts[start : start + 100])
            likeliest = logits(weights, hidden_states(weights, shape, batch.ids[:, :-1])).argmax(-1)
            hits = (likeliest == batch.ids[:, 1:]) | ~batch.counted[:, 1:]
            exact += int(hits.all(dim=1).sum())
    return exact / len(texts)


class Training:
    """A training run; it can be resumed from its last checkpoint and then gives the same weights.

    Parameters
    ----------
    options: the options of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        heads = options.width // 32
        self.shape = Shape(width=options.width, layers=options.layers, heads=heads, hidden=options.hidden)
        self.weights = new_weights(self.shape, options.seed)
        self.muon = Muon(weight for name, weight in self.weights.items() if _is_inner(name))
        outer = [weight for name, weight in self.weights.items() if not _is_inner(name)]
        self.adam = torch.optim.AdamW(outer, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.rows: list[dict[str, float]] = []

    def run(self) -> None:
        """Train to the end, with an evaluation, a checkpoint and an export at regular intervals."""
        options, recent, began = self.options, list[float](), time.monotonic() - self.seconds
        stream = islice(batches(options.seed, options.tokens), self.step, options.steps)
        bar = tqdm(stream, total=options.steps, initial=self.step, desc="training", mininterval=5.0)
        for batch in bar:
            self.step += 1
            rate = options.rate * schedule(self.step, options.steps)
            self.adam.param_groups[0]["lr"] = rate
            loss = loss_of(self.weights, self.shape, batch)
            loss.backward()
            self.muon.step(rate)
            self.adam.step()
            self.adam.zero_grad()
            self.tokens += batch.ids.numel()
            recent.append(loss.item())
            if self.step % options.every == 0 or self.step == options.steps:
                self.seconds = time.monotonic() - began
                bar.set_postfix(self.evaluate(sum(recent) / len(recent)))
                recent.clear()

    def evaluate(self, loss: float) -> dict[str, float]:
        """Evaluate on held-out questions, and write the log, the model and a checkpoint."""
        row = {
            "step": self.step,
            "loss": round(loss, 4),
            "tokens": self.tokens,
            "seconds": round(self.seconds),
            "fresh_direct": round(exact_share(self.weights, self.shape, thinking=False), 4),
            "fresh_thinking_at_least": round(exact_share(self.weights, self.shape, thinking=True), 4),
        }
        self.rows.append(row)
        names = ("seed", "steps", "rate", "threads")
        settings = {name: getattr(self.options, name) for name in names} | dataclasses.asdict(self.shape)
        settings |= {"tokens_per_batch": self.options.tokens, "torch": torch.__version__}
        settings["parameters"] = sum(weight.numel() for weight in self.weights.values())
        lines = [json.dumps(line) + "\n" for line in (settings, *self.rows)]
        (self.options.out / "training.jsonl").write_text("".join(lines), encoding="utf-8")
        arrays = {name: weight.detach().numpy() for name, weight in self.weights.items()}
        export(self.options.out / "model.gguf", arrays, dataclasses.asdict(self.shape))
        state = {name: getattr(self, name) for name in ("weights", "step", "tokens", "seconds", "rows")}
        state |= {"adam": self.adam.state_dict(), "muon": [direction for _, direction in self.muon.groups]}
        torch.save(state, self.options.checkpoint)
        return row

    def resume(self) -> None:
        """Continue from the checkpoint."""
        state = torch.load(self.options.checkpoint, weights_only=True)
        for name, weight in self.weights.items():
            weight.data.copy_(state["weights"][name])
        for (_, direction), saved in zip(self.muon.groups, state["muon"], strict=True):
            direction.copy_(saved)
        self.adam.load_state_dict(state["adam"])
        self.step, self.tokens, self.seconds, self.rows = (
            state[name] for name in ("step", "tokens", "seconds", "rows")
        )


def schedule(step: int, steps: int) -> float:
    """The learning rate as a share of the highest one: warm-up over 100 steps, constant, linear decay at the end.

    The decay takes the last quarter. Before it, the rate does not depend on the total number of steps, so a run that
    was stopped earlier can be resumed with another total.
    """
    return min(1.0, step / 100, 0.01 + 4.0 * (1.0 - step / steps))


def _is_inner(name: str) -> bool:
    """Whether a weight is a matrix inside a block; Muon trains those."""
    return name.startswith("blk.") and "norm" not in name


def _text(question: WorkedQuestion, thinking: bool) -> tuple[list[int], int]:
    """The tokens of a chat, and the index at which the reply begins."""
    prompt = vocabulary.encode_prompt(question.text, thinking)
    return prompt + vocabulary.encode_reply(question.steps, question.answer, thinking), len(prompt)


def _batch(texts: list[tuple[list[int], int]]) -> Batch:
    longest = max(len(ids) for ids, _ in texts)
    padding = vocabulary.IDS[vocabulary.END]
    rows = [ids + [padding] * (longest - len(ids)) for ids, _ in texts]
    counted = [[prompt <= place < len(ids) for place in range(longest)] for ids, prompt in texts]
    return Batch(torch.tensor(rows), torch.tensor(counted))


def main() -> None:
    """Train the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=14_000, help="number of batches (default: 14000)")
    parser.add_argument("--tokens", type=int, default=1536, help="tokens per batch (default: 1536)")
    parser.add_argument("--rate", type=float, default=5e-3, help="highest learning rate (default: 0.005)")
    parser.add_argument("--width", type=int, default=96, help="size of the embedding (default: 96)")
    parser.add_argument("--layers", type=int, default=4, help="number of layers (default: 4)")
    parser.add_argument("--hidden", type=int, default=256, help="size inside a feed-forward block (default: 256)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument("--threads", type=int, default=1, help="number of processor threads (default: 1)")
    parser.add_argument("--every", type=int, default=500, help="steps between evaluations (default: 500)")
    out = "folder for the model and its log (default: the package)"
    parser.add_argument("--out", type=Path, default=PACKAGE, help=out)
    checkpoint = Path("build/local_model.pt")
    parser.add_argument("--checkpoint", type=Path, default=checkpoint, help=f"checkpoint file (default: {checkpoint})")
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint")
    options = parser.parse_args()
    for folder in (options.out, options.checkpoint.parent):
        folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    training = Training(options)
    if options.resume:
        training.resume()
    training.run()


if __name__ == "__main__":
    main()
