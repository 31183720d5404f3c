"""Who signed thinking: marks by which a model gets back its own thinking, and no other model's.

1. Servers sign or encrypt the thinking of their models, and want it back as it was in the next turns of a conversation.
   They refuse, or ignore, what another model has signed. A conversation through a gateway has answers of several
   models, and the gateway keeps nothing of it.
2. So the signature itself says who made it: a mark is added to it in each reply, ``~`` and 8 digits that stand for the
   address of the server and the name of the model. Signatures are opaque to callers and contain no ``~``.
3. In a request, a signature with the mark of the model that is asked is sent without it, as the server wrote it.
   Thinking with the mark of another model is left out. Thinking without a mark has not come through here: its server
   decides.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from bpac.wire.json import from_json, to_json

_MARK = re.compile(r"~[0-9a-f]{8}")
# Where each kind of thinking has its signature: blocks and events of the Messages API, items of the Responses API.
SIGNED = {
    "thinking": "signature", "signature_delta": "signature", "redacted_thinking": "data",
    "reasoning": "encrypted_content",
}  # fmt: skip
_HINTS = (b"signature", b"redacted_thinking", b"encrypted_content")


def signer_of(address: str, model: str) -> str:
    """The digits that stand for a model on a server.

    >>> len(signer_of("https://example.org/v1", "large"))
    8
    """
    return blake2b(f"{address}\n{model}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def unsigned_mark(signature: str, signer: str) -> str | None:
    """A signature as its server wrote it; none if another model signed it.

    >>> unsigned_mark("EqQB~0123abcd", "0123abcd"), unsigned_mark("EqQB~0123abcd", "ffffffff")
    ('EqQB', None)
    """
    marks = set(_MARK.findall(signature))
    if not marks:
        return signature
    return _MARK.sub("", signature) if marks == {f"~{signer}"} else None


def is_marked(block: Mapping[str, Any]) -> bool:
    """Whether thinking has come through a gateway, which has marked who signed it."""
    signature = block.get(SIGNED.get(str(block.get("type")), ""))
    return isinstance(signature, str) and _MARK.search(signature) is not None


def own_thinking(block: Mapping[str, Any], signer: str) -> dict[str, Any] | None:
    """Thinking to be sent to a model, with its signature as the server wrote it; none if it has none of that model."""
    field = SIGNED[block["type"]]
    signature = block.get(field)
    if not isinstance(signature, str) or not signature:
        return None
    plain = unsigned_mark(signature, signer)
    return {**block, field: plain} if plain else None


def marked(data: bytes, signer: str) -> bytes:
    """A reply, or an event of one, with marked signatures.

    Parameters
    ----------
    data: what the server sent; ``AnswerError`` if it is not JSON.
    signer: the digits of the model; empty if nothing is to be marked.
    """
    if not signer or not any(hint in data for hint in _HINTS):
        return data
    value = from_json(data)
    found = False
    for piece in _pieces(value):
        field = SIGNED.get(str(piece.get("type")))
        if field and isinstance(signature := piece.get(field), str) and signature:
            piece[field] = f"{signature}~{signer}"
            found = True
    return to_json(value) if found else data


def _pieces(value: Any) -> list[dict[str, Any]]:
    """The blocks and items of a reply or an event."""
    if not isinstance(value, dict):
        return []
    pieces = [value.get(name) for name in ("content_block", "delta", "item")]
    for holder in (value, value.get("response")):
        for name in ("content", "output"):
            listed = holder.get(name) if isinstance(holder, dict) else None
            pieces += listed if isinstance(listed, list) else []
    return [piece for piece in pieces if isinstance(piece, dict)]
