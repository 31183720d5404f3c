"""Which model of a log is the draft and which is the expert."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bpac.benchmarks.benchmark import Message
from bpac.collecting.answers_file import ROLES
from bpac.errors import InputError
from bpac.importing.call import LoggedCall

# Models that are listed in an error.
_SHOWN = 10


@dataclass(slots=True)
class SeenModels:
    """The models of a log, with their answers and tokens so far.

    Parameters
    ----------
    answers, tokens: numbers by model; tokens are unknown (none) if an answer has none.
    names: all names of each model.
    roles: whether a call said itself which of the two it is.
    prompts: messages whose answer is elsewhere, by trace: the input files of the batch API.
    """

    answers: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int | None] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    roles: bool = False
    prompts: dict[str, tuple[Message, ...]] = field(default_factory=dict)

    def add(self, call: LoggedCall) -> None:
        """Count a call."""
        if call.is_prompt:
            self.prompts[call.trace] = call.messages
        elif call.role:
            self.roles = True
        elif call.answer is not None:
            counted = call.answer.completion_tokens or None
            before = self.tokens.get(call.model, 0)
            self.answers[call.model] = self.answers.get(call.model, 0) + 1
            self.tokens[call.model] = None if before is None or counted is None else before + counted
            self.names.setdefault(call.model, call.models)


@dataclass(frozen=True, slots=True)
class Roles:
    """The two models.

    Parameters
    ----------
    draft, expert: their names; empty if the log has no answers of that model.
    guessed: why they were taken for that; empty if the options name them.
    """

    draft: str
    expert: str
    guessed: str = ""

    def of(self, call: LoggedCall) -> str:
        """``draft``, ``expert``, or empty for the call of another model."""
        if call.role:
            return call.role
        for name in call.models:  # the most exact name first
            if name == self.draft:
                return "draft"
            if name == self.expert:
                return "expert"
        return ""


def chosen_roles(seen: SeenModels, draft: str | None, expert: str | None) -> Roles:
    """The two models of a log.

    If the options name none of them and the log has two, the one with shorter answers is the draft.

    Parameters
    ----------
    seen: the models of the log.
    draft, expert: as the options name them; none if they do not.
    """
    given = {"draft": draft, "expert": expert}
    if not seen.answers or (seen.roles and not any(given.values())):
        return Roles(draft or "", expert or "")
    for role, name in given.items():
        known = {one for names in seen.names.values() for one in names}
        if name is not None and name not in known and name not in (given[_other(role)],):
            raise InputError(f"--{role} {name}: the log has no answer of it; it has those of {_listed(seen.answers)}")
    rest = [model for model in seen.answers if not {draft, expert} & set(seen.names[model])]
    if draft is not None and expert is not None:
        return Roles(draft, expert)
    if draft is not None or expert is not None:
        other = rest[0] if len(rest) == 1 else ""
        if len(rest) > 1:
            lacking = "expert" if expert is None else "draft"
            raise InputError(f"--{lacking} is needed: the log has answers of {_listed(seen.answers)}")
        return Roles(draft or other, expert or other)
    if len(rest) == 1:
        raise InputError(
            f"only {_listed(seen.answers)} answered: say which of the two it is, --draft or --expert, and write its "
            "questions with --questions-out, so that bpac collect --questions can ask the other one"
        )
    means = {model: count / seen.answers[model] for model, count in seen.tokens.items() if count}
    if len(rest) != 2 or len(means) != 2 or len(set(means.values())) != 2:
        raise InputError(
            "--draft and --expert are needed to say which model is which: the log has answers of "
            + (_listed(seen.answers) or "no model that has a name")
        )
    low, high = sorted(means, key=means.__getitem__)
    return Roles(
        low, high, f"its answers are shorter: on average {means[low]:,.0f} against {means[high]:,.0f} tokens of {high}"
    )


def _other(role: str) -> str:
    return next(one for one in ROLES if one != role)


def _listed(answers: Mapping[str, int]) -> str:
    models: Sequence[str] = sorted(answers, key=answers.__getitem__, reverse=True)
    shown = ", ".join(f"{model or 'a model without a name'} ({answers[model]})" for model in models[:_SHOWN])
    return shown + (", …" if len(models) > _SHOWN else "")
