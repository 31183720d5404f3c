"""A pair of models that runs, and questions for it: the local one, or a scripted one in its place."""

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
from bpac.local.benchmark import COUNT, benchmark_questions
from bpac.local.chain import BODY, SLOTS
from bpac.local.server import LocalServer
from bpac.testing import ScriptedServer

# What the gateway's configuration calls the two models.
NAMES: Mapping[Role, str] = {"draft": "direct", "expert": "thinking"}


@dataclass(frozen=True, slots=True)
class PairModel:
    """Where a model is and how it is asked.

    Parameters
    ----------
    base_url: its server.
    name: what it is called there.
    body: fields of every request.
    """

    base_url: str
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models that answer, and what they can be asked.

    Parameters
    ----------
    name: ``local`` or ``scripted``.
    models: by their role.
    questions: different ones, with their right answers.
    instead_because: why it takes the place of the local pair, if it does and nobody asked for it.
    """

    name: str
    models: Mapping[Role, PairModel]
    questions: Sequence[Question]
    instead_because: str | None = None


@contextmanager
def started_pair(scripted: bool, seed: int, model: Path) -> Iterator[ModelPair]:
    """The local pair, or a scripted one if that is wanted or the local one cannot run, which is then announced.

    Parameters
    ----------
    scripted: do not even try to start the local pair.
    seed: of the questions.
    model: the weights of the local pair.
    """
    with ExitStack() as stack:
        reason = None
        if not scripted:
            try:
                server = stack.enter_context(LocalServer(model=model, slots=SLOTS))
            except (InputError, MissingExtra, Unavailable) as error:
                reason = str(error)
                sys.stderr.write(
                    f"bpac: the local pair cannot run ({reason})\n"
                    "bpac: a scripted pair takes its place: its answers are drawn, nobody thinks\n"
                )
            else:
                # The same small model twice: at once, and after thinking.
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
