"""Prompts as a few numbers: their embedding, projected to few dimensions by a fixed rule.

1. A score is learned from some hundred audits, so a prompt may have few features: 16, out of the 384 numbers of its
   embedding. Each is the sum of all 384 with fixed signs, which keeps prompts of similar meaning close together and
   depends on no data: the same prompt has the same features in every game.
2. The embedding is computed in a thread of its own while the draft is generated, so it delays no request unless the
   draft takes less time. Then it is waited for briefly; but not after one that came too late, until one comes in time.
3. Whatever fails, the features are not known (``PromptFeatures.get`` returns nothing), and the failure is counted.
"""

import asyncio
import hashlib
import importlib
import importlib.util
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bpac.errors import MissingExtra

PROMPT_FEATURES = tuple(f"prompt_{number}" for number in range(1, 17))
# The embedding takes time in proportion to the text, and its beginning says what kind of question it is.
LONGEST_PROMPT = 400
# Prompts that may wait for the thread. Each takes some 20 ms, so more would come too late anyway.
MOST_WAITING = 16
# Seconds that a request waits after its draft is there, and that the end of the process waits.
PATIENCE, MOST_AT_END = 0.1, 2.0
PLACES = 3

Embed = Callable[[str], NDArray[np.float64]]


def projected(embedding: NDArray[np.float64]) -> tuple[float, ...]:
    """The features of an embedding of length 1; each is about as large as a standard normal number.

    >>> len(projected(np.ones(384) / 384**0.5)) == len(PROMPT_FEATURES)
    True
    """
    return tuple(round(float(value), PLACES) for value in embedding @ _signs(len(embedding)))


@lru_cache(maxsize=1)
def _signs(size: int) -> NDArray[np.float64]:
    count = len(PROMPT_FEATURES)
    # From a hash, because the numbers of a random generator may differ between versions.
    data = hashlib.shake_256(b"bpac prompt").digest(size * count // 8)
    signs = np.unpackbits(np.frombuffer(data, dtype=np.uint8)).reshape(size, count).astype(np.float64)
    return 2.0 * signs - 1.0


def check_installed() -> None:
    """Raise ``MissingExtra`` if prompts cannot be embedded here."""
    for package in ("tokenizers", "safetensors"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtra("tokenizers and safetensors", "embeddings")


def load_embed() -> Embed:
    """The function that embeds a text; it takes about half a second to load."""
    module = importlib.import_module("bpac.models.embedding")  # not above: it needs packages that few installs have
    embed: Embed = module.SentenceModel.load().embed
    return embed


class PromptFeatures:
    """Computes the features of prompts in a thread of its own, where the model is loaded with the first prompt.

    Parameters
    ----------
    failed: called with the kind of each failure: ``busy``, ``late`` or the name of an error.
    """

    def __init__(self, failed: Callable[[str], None]) -> None:
        self._failed = failed
        self._embed: Embed | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bpac-prompts")
        self._begun: set[asyncio.Future[tuple[float, ...]]] = set()
        self._in_time = True  # whether the latest one was

    def preload(self) -> None:
        """Load the model now rather than with the first prompt."""
        self._thread.submit(self._compute, "")

    def start(self, prompt: str) -> "asyncio.Future[tuple[float, ...]] | None":
        """Begin to compute the features of a prompt; none if too many wait already."""
        if len(self._begun) >= MOST_WAITING:
            self._failed("busy")
            return None
        future: Future[tuple[float, ...]] = self._thread.submit(self._compute, prompt[:LONGEST_PROMPT])
        wrapped = asyncio.wrap_future(future)
        self._begun.add(wrapped)
        wrapped.add_done_callback(self._done)
        return wrapped

    async def get(self, begun: "asyncio.Future[tuple[float, ...]] | None") -> tuple[float, ...]:
        """The features of a prompt; empty if they are not known in time.

        Parameters
        ----------
        begun: what ``start`` returned.
        """
        if begun is None:
            return ()
        if self._in_time and not begun.done():
            await asyncio.wait([begun], timeout=PATIENCE)
        self._in_time = begun.done()
        if not begun.done():
            # It is not cancelled: as long as it waits for the thread, it counts among those that do.
            self._failed("late")
            return ()
        if (error := begun.exception()) is not None:
            self._failed(type(error).__name__)
            return ()
        return begun.result()

    async def close(self) -> None:
        """End the thread after what it computes now, if that does not take long."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._begun:
            await asyncio.wait(self._begun, timeout=MOST_AT_END)

    def _compute(self, prompt: str) -> tuple[float, ...]:
        if self._embed is None:
            self._embed = load_embed()
        features = projected(self._embed(prompt))
        if not all(map(math.isfinite, features)):
            raise ValueError("the embedding of a prompt is not finite")
        return features

    def _done(self, future: "asyncio.Future[tuple[float, ...]]") -> None:
        self._begun.discard(future)
        if not future.cancelled():
            future.exception()  # taken note of here, so that asyncio does not log it where nobody asks for it
