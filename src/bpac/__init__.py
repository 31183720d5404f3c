"""bpac: spend LLM thinking only where it matters, with a promise that can be proved."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bpac.betting.bounds.certificate import Certificate
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json, read_journal
from bpac.routing.router import Router
from bpac.routing.segments import Segments
from bpac.routing.tickets.ticket import Ticket

if TYPE_CHECKING:
    from bpac.answer import Answer, Token
    from bpac.losses import AnswerLoss, EmbeddingLoss, Loss, ToolCallLoss
    from bpac.remote.router import RemoteRouter
    from bpac.saved_router import SavedRouter
    from bpac.scores import (
        AgreementAndConfidence,
        Entropy,
        FirstTokens,
        MeanTokenProbability,
        OptionProbability,
        Perplexity,
        Score,
        SelfConsistency,
        Verbalized,
        VerbalizedWords,
    )

__all__ = [
    "AgreementAndConfidence",
    "Answer",
    "AnswerLoss",
    "Certificate",
    "Decision",
    "EmbeddingLoss",
    "Entropy",
    "Entry",
    "FirstTokens",
    "Loss",
    "MeanTokenProbability",
    "OptionProbability",
    "Perplexity",
    "RemoteRouter",
    "Router",
    "Score",
    "Segments",
    "SelfConsistency",
    "Ticket",
    "Token",
    "ToolCallLoss",
    "Verbalized",
    "VerbalizedWords",
    "__version__",
    "entry_from_json",
    "entry_to_json",
    "open",
    "read_journal",
]
__version__ = "0.1.0"

# Modules that are imported when one of their names is used: many programs only route, and ``RemoteRouter`` needs the
# extra ``models``.
_LATER = {
    "bpac.answer": ("Answer", "Token"),
    "bpac.losses": ("AnswerLoss", "EmbeddingLoss", "Loss", "ToolCallLoss"),
    "bpac.remote.router": ("RemoteRouter",),
    "bpac.scores": (
        *("AgreementAndConfidence", "Entropy", "FirstTokens", "MeanTokenProbability", "OptionProbability"),
        *("Perplexity", "Score", "SelfConsistency", "Verbalized", "VerbalizedWords"),
    ),
}


def open(path: "str | os.PathLike[str]", epsilon: float | None = None, **settings: Any) -> "SavedRouter":  # noqa: A001
    """The router in a file, which survives its process; a new one if the file holds none yet.

    Parameters
    ----------
    path: the file.
    epsilon: limit on the loss (ε). Needed for a new router.
    settings: further settings, as ``Router`` takes them. For a router that exists, ``epsilon`` and these must be the
        ones it was made with, or be left out.
    """
    from bpac.saved_router import open_router  # noqa: PLC0415  # stores are imported when they are needed

    return open_router(path, epsilon, **settings)


def __getattr__(name: str) -> Any:
    """A public name of a module that is imported now, because it is used for the first time."""
    for module, names in _LATER.items():
        if name in names:
            value = globals()[name] = getattr(import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
