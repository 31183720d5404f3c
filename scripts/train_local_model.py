"""Train the local model from scratch on the CPU and write it with its log: ``python -m scripts.train_local_model``.

It needs torch==2.13.0 and gguf, which nothing else here does.
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
# Not the seed that the figures are measured with: what is looked at during training is not used to judge it.
WATCHED = held_out_questions(220, seed=10)

# Direct answers are harder to learn and shorter to write: with this share, each way gets about half of all tokens.
THINKING = 0.35


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Texts of about one length, padded, and which of their tokens are to be predicted."""

    ids: Tensor
    counted: Tensor


def batches(seed: int, tokens: int, pool: int = 8192) -> Iterator[Batch]:
    """Batches without end; each question is answered directly or after thinking.

    Parameters
    ----------
    seed: the same seed gives the same batches.
    tokens: about how many tokens are in a batch, padding included.
    pool: how many texts are sorted by length at a time, so that little is padded.
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
    """Mean surprise at the tokens of the replies; what was asked is not learnt."""
    states = hidden_states(weights, shape, batch.ids[:, :-1])
    counted = batch.counted[:, 1:]
    return functional.cross_entropy(logits(weights, states[counted]), batch.ids[:, 1:][counted])


def exact_share(weights: Weights, shape: Shape, thinking: bool) -> float:
    """Share of watched questions on which every likeliest token is the taught one: then greedy decoding is right.

    With thinking this is a lower bound: an unusual step can still lead to the right answer.
    """
    texts = [_text(question, thinking) for question in WATCHED]
    right = 0
    with torch.no_grad():
        for start in range(0, len(texts), 100):
            batch = _batch(texts[start : start + 100])
            likeliest = logits(weights, hidden_states(weights, shape, batch.ids[:, :-1])).argmax(-1)
            hits = (likeliest == batch.ids[:, 1:]) | ~batch.counted[:, 1:]
            right += int(hits.all(dim=1).sum())
    return right / len(texts)


class Training:
    """A training run: it can be stopped at any look and goes on from there, to the same end.

    Parameters
    ----------
    options: what the command line says.
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
        """Train to the end, with a look at fresh questions, a checkpoint and an export now and then."""
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
                bar.set_postfix(self.look(sum(recent) / len(recent)))
                recent.clear()

    def look(self, loss: float) -> dict[str, float]:
        """Try fresh questions, and write down everything."""
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
        kept = {name: getattr(self, name) for name in ("weights", "step", "tokens", "seconds", "rows")}
        kept |= {"adam": self.adam.state_dict(), "muon": [direction for _, direction in self.muon.groups]}
        torch.save(kept, self.options.checkpoint)
        return row

    def resume(self) -> None:
        """Go on from the checkpoint."""
        kept = torch.load(self.options.checkpoint, weights_only=True)
        for name, weight in self.weights.items():
            weight.data.copy_(kept["weights"][name])
        for (_, direction), saved in zip(self.muon.groups, kept["muon"], strict=True):
            direction.copy_(saved)
        self.adam.load_state_dict(kept["adam"])
        self.step, self.tokens, self.seconds, self.rows = (kept[name] for name in ("step", "tokens", "seconds", "rows"))


def schedule(step: int, steps: int) -> float:
    """Share of the highest rate: up in 100 steps, level, and down in a straight line over the last quarter.

    Until it goes down it does not depend on how many steps there will be, so a run that was stopped before can go on
    as a longer or a shorter one.
    """
    return min(1.0, step / 100, 0.01 + 4.0 * (1.0 - step / steps))


def _is_inner(name: str) -> bool:
    """Whether a weight is a matrix inside a block: those are Muon's."""
    return name.startswith("blk.") and "norm" not in name


def _text(question: WorkedQuestion, thinking: bool) -> tuple[list[int], int]:
    """A chat in tokens, and where its reply begins."""
    prompt = vocabulary.encode_prompt(question.text, thinking)
    return prompt + vocabulary.encode_reply(question.steps, question.answer, thinking), len(prompt)


def _batch(texts: list[tuple[list[int], int]]) -> Batch:
    longest = max(len(ids) for ids, _ in texts)
    padding = vocabulary.IDS[vocabulary.END]
    rows = [ids + [padding] * (longest - len(ids)) for ids, _ in texts]
    counted = [[prompt <= place < len(ids) for place in range(longest)] for ids, prompt in texts]
    return Batch(torch.tensor(rows), torch.tensor(counted))


def main() -> None:
    """Read the options and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=14_000)
    parser.add_argument("--tokens", type=int, default=1536, help="tokens in a batch")
    parser.add_argument("--rate", type=float, default=5e-3, help="highest learning rate")
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=500, help="steps between looks at fresh questions")
    parser.add_argument("--out", type=Path, default=PACKAGE, help="folder for the model and its log")
    parser.add_argument("--checkpoint", type=Path, default=Path("build/local_model.pt"))
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint")
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
