"""The architecture of the local model: a small Llama whose weights have their GGUF names."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from bpac.local import vocabulary

Tensor = Any  # torch.Tensor; the type checks of this project run without torch
Weights = dict[str, Tensor]
KeysAndValues = tuple[Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model.

    Parameters
    ----------
    width: size of the embedding of a token.
    layers: number of layers.
    heads: number of attention heads per layer.
    hidden: size inside a feed-forward block.
    context: largest number of tokens of a text.
    rope_base, norm_epsilon: constants of the rotary positions and of the normalization.
    """

    width: int = 96
    layers: int = 4
    heads: int = 3
    hidden: int = 256
    context: int = 512
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5


def new_weights(shape: Shape, seed: int) -> Weights:
    """Random initial weights; the embedding is also the output layer."""
    source = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> Tensor:
        return torch.randn(rows, columns, generator=source) * (scale / math.sqrt(columns))

    # The output of each block starts small, so that the sum of many blocks does not dominate the embedding.
    added = 1.0 / math.sqrt(2.0 * shape.layers)
    weights = {"token_embd.weight": torch.randn(vocabulary.SIZE, shape.width, generator=source) * 0.02}
    for layer in range(shape.layers):
        name = f"blk.{layer}"
        weights[f"{name}.attn_norm.weight"] = torch.ones(shape.width)
        for part in ("attn_q", "attn_k", "attn_v"):
            weights[f"{name}.{part}.weight"] = matrix(shape.width, shape.width)
        weights[f"{name}.attn_output.weight"] = matrix(shape.width, shape.width, added)
        weights[f"{name}.ffn_norm.weight"] = torch.ones(shape.width)
        for part in ("ffn_gate", "ffn_up"):
            weights[f"{name}.{part}.weight"] = matrix(shape.hidden, shape.width)
        weights[f"{name}.ffn_down.weight"] = matrix(shape.width, shape.hidden, added)
    weights["output_norm.weight"] = torch.ones(shape.width)
    return {name: weight.requires_grad_() for name, weight in weights.items()}


def hidden_states(weights: Weights, shape: Shape, ids: Tensor, prefix: Tensor | None = None) -> Tensor:
    """The last hidden state of each token, from which ``logits`` predicts the next one.

    Parameters
    ----------
    weights: the weights of the model.
    shape: the sizes of the model.
    ids: token ids, one text per row, padded on the right (earlier tokens do not depend on the padding).
    prefix: token ids with which every text begins and whose states are not returned; they are computed only once
        (default: none).
    """
    begun = 0 if prefix is None else len(prefix)
    rotations = _rotations(shape, begun + ids.shape[1])
    embedding = weights["token_embd.weight"]
    state = functional.embedding(ids, embedding)
    shared = None if prefix is None else functional.embedding(prefix[None], embedding)
    for layer in range(shape.layers):
        part = {name.split(".")[2]: weight for name, weight in weights.items() if name.startswith(f"blk.{layer}.")}
        earlier = None
        if shared is not None:
            shared, earlier = _block(part, shape, shared, rotations[:begun], None)
        state, _ = _block(part, shape, state, rotations[begun:], earlier)
    return _norm(state, weights["output_norm.weight"], shape)


def logits(weights: Weights, states: Tensor) -> Tensor:
    """The logits of the next token."""
    return states @ weights["token_embd.weight"].T


def _norm(state: Tensor, gain: Tensor, shape: Shape) -> Tensor:
    return functional.rms_norm(state, (shape.width,), gain, shape.norm_epsilon)


def _block(
    part: Weights, shape: Shape, state: Tensor, rotations: Tensor, earlier: KeysAndValues | None
) -> tuple[Tensor, KeysAndValues]:
    """One layer; returns the new state, and the keys and values that later tokens can attend to."""
    mixed, kept = _attention(part, shape, _norm(state, part["attn_norm"], shape), rotations, earlier)
    state = state + mixed
    normed = _norm(state, part["ffn_norm"], shape)
    gate, up = (normed @ torch.cat([part["ffn_gate"], part["ffn_up"]]).T).chunk(2, dim=-1)
    gated = functional.silu(gate) * up
    return state + gated @ part["ffn_down"].T, kept


def _attention(
    part: Weights, shape: Shape, state: Tensor, rotations: Tensor, earlier: KeysAndValues | None
) -> tuple[Tensor, KeysAndValues]:
    rows, length, _ = state.shape
    joined = torch.cat([part["attn_q"], part["attn_k"], part["attn_v"]])
    query, key, value = (state @ joined.T).view(rows, length, 3, shape.heads, -1).permute(2, 0, 3, 1, 4)
    query, key = _rotated(query, rotations), _rotated(key, rotations)
    kept, mask = (key, value), None
    if earlier is not None:
        key, value = (
            torch.cat([past.expand(rows, -1, -1, -1), now], dim=2) for past, now in zip(earlier, kept, strict=True)
        )
        mask = torch.ones(length, key.shape[2], dtype=torch.bool).tril(key.shape[2] - length)
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
    return mixed.transpose(1, 2).reshape(rows, length, shape.width) @ part["attn_output"].T, kept


def _rotations(shape: Shape, length: int) -> Tensor:
    half = shape.width // shape.heads // 2
    frequencies = shape.rope_base ** (-torch.arange(half) / half)
    angles = torch.arange(length)[:, None] * frequencies
    return torch.polar(torch.ones_like(angles), angles)


def _rotated(vectors: Tensor, rotations: Tensor) -> Tensor:
    # Neighbouring elements are rotated together, as llama.cpp does for this architecture. If halves were rotated
    # together, as in other libraries, queries and keys would have to be permuted on export.
    pairs = torch.view_as_complex(vectors.reshape(*vectors.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotations).flatten(-2)
