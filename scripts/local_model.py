"""The local model's architecture: a small Llama whose weights go by the names that GGUF gives them."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from bpac.local import vocabulary

Tensor = Any  # torch.Tensor; the checks of this project run without torch
Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model.

    Parameters
    ----------
    width: numbers that stand for a token.
    layers: how many layers.
    heads: attention heads in each.
    hidden: width inside a feed-forward block.
    context: the longest text it is made for, in tokens.
    rope_base, norm_epsilon: constants of the architecture.
    """

    width: int = 96
    layers: int = 4
    heads: int = 3
    hidden: int = 256
    context: int = 512
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5


def new_weights(shape: Shape, seed: int) -> Weights:
    """Random weights to start from; the embedding is also the head."""
    source = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> Tensor:
        return torch.randn(rows, columns, generator=source) * (scale / math.sqrt(columns))

    # What each block adds is made smaller, or the sum of many blocks would drown the embedding.
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
    """What the model makes of each token, given those before it; ``logits`` turns it into predictions.

    Parameters
    ----------
    weights: the model.
    shape: its sizes.
    ids: tokens, one text in each row, padded on the right (which no token before can see).
    """
    turns = _turns(shape, ids.shape[1])
    state = functional.embedding(ids, weights["token_embd.weight"])
    for layer in range(shape.layers):
        part = {name.split(".")[2]: weight for name, weight in weights.items() if name.startswith(f"blk.{layer}.")}
        state = state + _attention(part, shape, _norm(state, part["attn_norm"], shape), turns)
        calm = _norm(state, part["ffn_norm"], shape)
        gate, up = (calm @ torch.cat([part["ffn_gate"], part["ffn_up"]]).T).chunk(2, dim=-1)
        gated = functional.silu(gate) * up
        state = state + gated @ part["ffn_down"].T
    return _norm(state, weights["output_norm.weight"], shape)


def logits(weights: Weights, states: Tensor) -> Tensor:
    """Scores of every token to come next."""
    return states @ weights["token_embd.weight"].T


def _norm(state: Tensor, gain: Tensor, shape: Shape) -> Tensor:
    return functional.rms_norm(state, (shape.width,), gain, shape.norm_epsilon)


def _attention(part: Weights, shape: Shape, state: Tensor, turns: Tensor) -> Tensor:
    rows, length, _ = state.shape
    joined = torch.cat([part["attn_q"], part["attn_k"], part["attn_v"]])
    query, key, value = (state @ joined.T).view(rows, length, 3, shape.heads, -1).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(_turned(query, turns), _turned(key, turns), value, is_causal=True)
    return mixed.transpose(1, 2).reshape(rows, length, shape.width) @ part["attn_output"].T


def _turns(shape: Shape, length: int) -> Tensor:
    half = shape.width // shape.heads // 2
    speeds = shape.rope_base ** (-torch.arange(half) / half)
    angles = torch.arange(length)[:, None] * speeds
    return torch.polar(torch.ones_like(angles), angles)


def _turned(vectors: Tensor, turns: Tensor) -> Tensor:
    # Neighbours are turned together, as llama.cpp does for this architecture; with halves turned together, as
    # other libraries do, queries and keys would have to be permuted on export.
    pairs = torch.view_as_complex(vectors.reshape(*vectors.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2)
