"""The two models of a demo and questions for them: the local model that comes with bpac, or scripted ones."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpac.benchmarks.benchmark import Question
from bpac.collecting.answers_file import ROLES, Role
from bpac.demo.scripted import scripted_questions, scripted_reply
from bpac.errors import InputError, MissingExtra, Unavailable
from bpac.local.answer_modes import BODY
from bpac.local.benchmark import COUNT, benchmark_questions
from bpac.local.prompting import SLOTS
from bpac.local.server import LocalServer
from bpac.testing import ScriptedServer

# The names of the two models in the gateway's configuration.
NAMES: Mapping[Role, str] = {"draft": "direct", "expert": "thinking"}


@dataclass(frozen=True, slots=True)
class PairModel:
    """A model on a running server.

    Parameters
    ----------
    base_url: base URL of the server.
    name: name of the model there.
    body: additional fields of every request.
    """

    base_url: str
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two running models and questions for them.

    Parameters
    ----------
    name: ``local`` or ``scripted``.
    models: the models by role.
    questions: different questions with their correct answers.
    instead_because: why the scripted pair is used although the local one was wanted; None otherwise.
    """

    name: str
    models: Mapping[Role, PairModel]
    questions: Sequence[Question]
    instead_because: str | None = None


@contextmanager
def started_pair(scripted: bool, seed: int, model: Path) -> Iterator[ModelPair]:
    """Start the local pair, or a scripted pair if that is wanted or the local one cannot run.

    The reason why the local pair cannot run is written to standard error.

    Parameters
    ----------
    scripted: whether to use the scripted pair.
    seed: random seed of the questions.
    model: GGUF file of the local model.
    """
    with ExitStack() as stack:
        reason = None
        if not scripted:
            try:
                server = stack.enter_context(LocalServer(model=model, slots=SLOTS))
            except (InputError, MissingExtra, Unavailable) as error:
                reason = str(error)
                sys.stderr.write(
                    f"bpac: the local model cannot run ({reason})\n"
                    "bpac: using a scripted pair instead, whose answers are random and not computed by a model\n"
                )
            else:
                # One small model in two roles: it answers at once, or after thinking.
                models = {
                    role: PairModel(
                        server.base_url,
                        server.name,
                        {**BODY, "chat_template_kwargs": {"enable_thinking": role == "expert"}},
                    )
                    for role in ROLES
                }
                yield ModelPair("local", models, benchmark_questions(COUNT, seed))
                return
        scripts = stack.enter_context(ScriptedServer(lambda request: scripted_reply(request, NAMES["draft"])))
        models = {role: PairModel(scripts.base_url, NAMES[role]) for role in ROLES}
        yield ModelPair("scripted", models, scripted_questions(COUNT, seed), reason)
