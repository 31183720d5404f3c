"""Train the local model from scratch on the CPU: ``python -m scripts.train_local_model``.

This writes the model and its training log. It needs the extra ``train`` (torch and gguf).
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from tqdm import tqdm

from bpac.local.answer_modes import MODES, AnswerMode
from bpac.local.questions import held_out_questions
from scripts.export_local_model import export
from scripts.local_model import Shape, Tensor, Weights, hidden_states, logits, new_weights
from scripts.muon import Muon
from scripts.training_texts import Batch, batch_of, batches, chat_text

PACKAGE = Path(__file__).parents[1] / "src" / "bpac" / "local"
# Another seed than that of the final measurement, so that training is not tuned to the questions it is judged by.
EVALUATION_QUESTIONS = held_out_questions(220, seed=10)


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """A part of the training with its own texts and learning rates.

    Parameters
    ----------
    steps: number of batches.
    shares: share of the texts in each mode.
    peak: highest learning rate, relative to that of the command line (default: 1).
    decay: share of the phase, at its end, in which the learning rate falls (default: a quarter).
    """

    steps: int
    shares: Mapping[str, float]
    peak: float = 1.0
    decay: float = 0.25

    def rate(self, step: int) -> float:
        """The relative learning rate of a step: warm-up over 100 steps, constant, linear decay at the end.

        Before the decay, the rate does not depend on the number of steps, so a run that was stopped earlier can be
        resumed with another number.
        """
        return self.peak * min(1.0, step / 100, 0.01 + (1.0 - step / self.steps) / self.decay)


def phases(steps: int, last_steps: int) -> tuple[Phase, Phase]:
    """Most of the training, and a short last phase with more texts of Chain of Draft, which is learned more slowly."""
    # Direct answers are short: in the first phase they get about as many tokens as texts with full steps.
    first = {"direct": 0.42, "nothinking": 0.10, "chain-of-draft": 0.15, "thinking": 0.33}
    last = {"direct": 0.25, "nothinking": 0.10, "chain-of-draft": 0.45, "thinking": 0.20}
    return Phase(steps, first), Phase(last_steps, last, peak=0.35, decay=1.0)


def loss_of(weights: Weights, shape: Shape, batch: Batch) -> Tensor:
    """Mean cross-entropy of the tokens of the replies; the questions are not learned."""
    states = hidden_states(weights, shape, batch.ids[:, :-1], batch.prefix)
    counted = batch.counted[:, 1:]
    return functional.cross_entropy(logits(weights, states[counted]), batch.ids[:, 1:][counted])


def exact_share(weights: Weights, shape: Shape, mode: AnswerMode) -> float:
    """Share of evaluation questions on which greedy decoding gives exactly the trained reply.

    With reasoning this is a lower bound: other steps can also lead to the correct answer.
    """
    texts = [chat_text(question, mode) for question in EVALUATION_QUESTIONS]
    exact = 0
    with torch.no_grad():
        for start in range(0, len(texts), 100):
            batch = batch_of(texts[start : start + 100])
            states = hidden_states(weights, shape, batch.ids[:, :-1], batch.prefix)
            hits = (logits(weights, states).argmax(-1) == batch.ids[:, 1:]) | ~batch.counted[:, 1:]
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
        self.phases = phases(options.steps, options.last_steps)
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.rows: list[dict[str, float]] = []

    def run(self) -> None:
        """Train to the end, with an evaluation, a checkpoint and an export at regular intervals."""
        before = 0
        for number, phase in enumerate(self.phases):
            if self.step < before + phase.steps:
                self._run_phase(phase, number, before)
            before += phase.steps

    def _run_phase(self, phase: Phase, number: int, before: int) -> None:
        options, recent, began = self.options, list[float](), time.monotonic() - self.seconds
        stream = batches(options.seed + 1_000 * number, options.tokens, phase.shares)
        done = self.step - before
        bar = tqdm(islice(stream, done, phase.steps), total=phase.steps, initial=done, desc="training", mininterval=5.0)
        for batch in bar:
            self.step += 1
            rate = options.rate * phase.rate(self.step - before)
            self.adam.param_groups[0]["lr"] = rate
            loss = loss_of(self.weights, self.shape, batch)
            loss.backward()
            self.muon.step(rate)
            self.adam.step()
            self.adam.zero_grad()
            self.tokens += batch.tokens
            recent.append(loss.item())
            if self.step % options.every == 0 or self.step == before + phase.steps:
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
        }
        for name, mode in MODES.items():
            column = f"fresh_{name.replace('-', '_')}{'_at_least' if mode.reasoning else ''}"
            row[column] = round(exact_share(self.weights, self.shape, mode), 4)
        self.rows.append(row)
        settings: dict[str, Any] = {name: getattr(self.options, name) for name in ("seed", "rate", "threads")}
        settings |= {"steps": sum(phase.steps for phase in self.phases)} | dataclasses.asdict(self.shape)
        settings |= {"tokens_per_batch": self.options.tokens, "torch": torch.__version__}
        settings["phases"] = [dataclasses.asdict(phase) for phase in self.phases]
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


def _is_inner(name: str) -> bool:
    """Whether a weight is a matrix inside a block; Muon trains those."""
    return name.startswith("blk.") and "norm" not in name


def main() -> None:
    """Train the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=24_000, help="batches of the first phase (default: 24000)")
    parser.add_argument("--last-steps", type=int, default=2_400, help="batches of the last phase (default: 2400)")
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
