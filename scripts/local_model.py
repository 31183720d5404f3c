"""The architecture of the local model: a small Llama whose weights have their GGUF names."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from bpac.local import vocabulary

Tensor = Any  # torch.Tensor; the type checks of this project run without torch
Weights = dict[str, Tensor]


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


def hidden_states(weights: Weights, shape: Shape, ids: Tensor) -> Tensor:
    """The last hidden state of each token, from which ``logits`` predicts the next one.

    Parameters
    ----------
    weights: the weights of the model.
    shape: the sizes of the model.
    ids: token ids, one text per row, padded on the right (earlier tokens do not depend on the padding).
    """
    rotations = _rotations(shape, ids.shape[1])
    state = functional.embedding(ids, weights["token_embd.weight"])
    for layer in range(shape.layers):
        part = {name.split(".")[2]: weight for name, weight in weights.items() if name.startswith(f"blk.{layer}.")}
        state = state + _attention(part, shape, _norm(state, part["attn_norm"], shape), rotations)
        normed = _norm(state, part["ffn_norm"], shape)
        gate, up = (normed @ torch.cat([part["ffn_gate"], part["ffn_up"]]).T).chunk(2, dim=-1)
        gated = functional.silu(gate) * up
        state = state + gated @ part["ffn_down"].T
    return _norm(state, weights["output_norm.weight"], shape)


def logits(weights: Weights, states: Tensor) -> Tensor:
    """The logits of the next token."""
    return states @ weights["token_embd.weight"].T


def _norm(state: Tensor, gain: Tensor, shape: Shape) -> Tensor:
    return functional.rms_norm(state, (shape.width,), gain, shape.norm_epsilon)


def _attention(part: Weights, shape: Shape, state: Tensor, rotations: Tensor) -> Tensor:
    rows, length, _ = state.shape
    joined = torch.cat([part["attn_q"], part["attn_k"], part["attn_v"]])
    query, key, value = (state @ joined.T).view(rows, length, 3, shape.heads, -1).permute(2, 0, 3, 1, 4)
    query, key = _rotated(query, rotations), _rotated(key, rotations)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2).reshape(rows, length, shape.width) @ part["attn_output"].T


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
