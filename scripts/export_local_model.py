"""Write a trained model to a GGUF file with its weights, tokenizer and chat template."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from bpac.local import vocabulary


def export(path: Path, weights: Mapping[str, np.ndarray[Any, Any]], shape: Mapping[str, float]) -> None:
    """Write the file, completely or not at all.

    Parameters
    ----------
    path: the file.
    weights: the weights by their GGUF names.
    shape: the fields of ``scripts.local_model.Shape``.
    """
    part = path.with_suffix(".part")
    writer = gguf.GGUFWriter(part, "llama")
    writer.add_name("bpac local")
    writer.add_license("MIT")
    writer.add_description("Arithmetic and symbol puzzles, answered directly or after written steps")
    writer.add_context_length(int(shape["context"]))
    writer.add_embedding_length(int(shape["width"]))
    writer.add_block_count(int(shape["layers"]))
    writer.add_feed_forward_length(int(shape["hidden"]))
    writer.add_head_count(int(shape["heads"]))
    writer.add_head_count_kv(int(shape["heads"]))
    writer.add_rope_dimension_count(int(shape["width"]) // int(shape["heads"]))
    writer.add_rope_freq_base(shape["rope_base"])
    writer.add_layer_norm_rms_eps(shape["norm_epsilon"])
    writer.add_vocab_size(vocabulary.SIZE)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer)
    for name, weight in weights.items():
        writer.add_tensor(name, np.ascontiguousarray(weight, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(path)


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    """Add a byte-level BPE tokenizer without merges: every byte is one token."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*vocabulary.byte_names(), *vocabulary.SPECIAL])
    # The tags of the reasoning are part of the output; the other special tokens control the chat and are not shown.
    shown = (vocabulary.THINK, vocabulary.END_THINK)
    special = [
        gguf.TokenType.USER_DEFINED if token in shown else gguf.TokenType.CONTROL for token in vocabulary.SPECIAL
    ]
    writer.add_token_types([gguf.TokenType.NORMAL] * 256 + special)
    # llama.cpp requires a list of merges that is not empty; a merge whose result is not a token has no effect.
    zero = vocabulary.byte_names()[0]
    writer.add_token_merges([f"{zero} {zero}"])
    end = vocabulary.IDS[vocabulary.END]
    writer.add_bos_token_id(end)
    writer.add_eos_token_id(end)
    writer.add_pad_token_id(end)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_chat_template(vocabulary.CHAT_TEMPLATE)
