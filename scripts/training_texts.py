"""The training texts of the local model: chats as the server sends them, with the reply to learn, in batches."""

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import torch

from bpac.local import vocabulary
from bpac.local.answer_modes import MODES, AnswerMode
from bpac.local.questions import training_questions
from bpac.local.worked_question import WorkedQuestion
from scripts.local_model import Tensor


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """The tokens of a chat.

    Parameters
    ----------
    ids: the tokens after the system message.
    reply: the index in ``ids`` at which the reply begins.
    prefix: the tokens of the system message, which many texts share (default: none).
    """

    ids: list[int]
    reply: int
    prefix: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Texts of similar length, padded, a mask of the tokens that the model learns to predict, and a common prefix."""

    ids: Tensor
    counted: Tensor
    prefix: Tensor | None

    @property
    def tokens(self) -> int:
        """The number of tokens to compute, including padding; a common prefix is computed once."""
        return int(self.ids.numel()) + (0 if self.prefix is None else len(self.prefix))


def batches(seed: int, tokens: int, shares: Mapping[str, float], pool: int = 8192) -> Iterator[Batch]:
    """An endless stream of batches; each question is answered in one of the modes.

    Parameters
    ----------
    seed: random seed.
    tokens: approximate number of tokens in a batch, including padding.
    shares: share of the texts in each mode.
    pool: number of texts that are sorted by length at a time, which reduces padding (default: 8192).
    """
    rng = random.Random(seed)
    questions = training_questions(seed)
    while True:
        modes = rng.choices([MODES[name] for name in shares], weights=list(shares.values()), k=pool)
        texts = [chat_text(*both, rng) for both in zip(islice(questions, pool), modes, strict=True)]
        made = []
        # The states of a system message are computed once per batch, so texts with and without one are not mixed.
        for prefix in sorted({text.prefix for text in texts}):
            ordered = sorted((text for text in texts if text.prefix == prefix), key=lambda text: len(text.ids))
            start, room = 0, tokens - len(prefix)
            for stop in range(1, len(ordered) + 1):
                if stop == len(ordered) or (stop + 1 - start) * len(ordered[stop].ids) > room:
                    made.append(batch_of(ordered[start:stop]))
                    start = stop
        rng.shuffle(made)
        yield from made


def chat_text(question: WorkedQuestion, mode: AnswerMode, rng: random.Random | None = None) -> Text:
    """A chat as the server sends it to the model, followed by the reply to learn."""
    messages = mode.messages(question.text)
    thinking = mode.thinking
    if messages[-1]["role"] == "assistant":
        # Before a message that is continued, llama.cpp writes empty reasoning and other servers write nothing.
        thinking = rng is not None and rng.random() < 0.5
    prompt = vocabulary.encode_prompt(messages, thinking)
    # The system message, with its first and last special token, is the same for all texts of a mode.
    shared = len(messages[0]["content"]) + 2 if messages[0]["role"] == "system" else 0
    reply = vocabulary.encode_reply(mode.reasoning and mode.reasoning(question), question.answer)
    return Text([*prompt[shared:], *reply], len(prompt) - shared, tuple(prompt[:shared]))


def batch_of(texts: Sequence[Text]) -> Batch:
    """The texts as one batch; all have the same prefix."""
    longest = max(len(text.ids) for text in texts)
    padding = vocabulary.IDS[vocabulary.END]
    rows = [text.ids + [padding] * (longest - len(text.ids)) for text in texts]
    counted = [[text.reply <= place < len(text.ids) for place in range(longest)] for text in texts]
    prefix = texts[0].prefix
    return Batch(torch.tensor(rows), torch.tensor(counted), torch.tensor(prefix) if prefix else None)
