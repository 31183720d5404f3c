"""Settings of a draft and an expert in another program: which models, which score, which loss."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from bpac.answer import Answer
from bpac.arguments import one_of
from bpac.errors import SettingsError
from bpac.grading.equality import same_final, same_text
from bpac.losses import AnswerLoss, Equal, ToolCallLoss
from bpac.scores import Score, named_score
from bpac.wire.completions import read_completion

# How the texts of two answers are compared, by the name of the loss.
LOSSES: Mapping[str, Equal] = {"answer": same_final, "text": same_text}


@dataclass(frozen=True, slots=True)
class PairSettings:
    """Two models, by the names that the other program has for them.

    Parameters
    ----------
    draft: the model that is asked first.
    expert: the model whose answers drafts are compared with.
    score: name of the score of a draft (default: ``mean_token_probability``). It must need nothing but one answer and
        its log-probabilities.
    loss: ``answer``, whether both final answers are equal (default), or ``text``, whether both texts are.
    """

    draft: str
    expert: str
    score: str = "mean_token_probability"
    loss: str = "answer"

    def __post_init__(self) -> None:
        one_of(self.loss, "loss", tuple(LOSSES))
        needs = self.uncertainty.needs
        if needs.samples or needs.suffix:
            raise SettingsError(
                f"score: {self.score} needs more than one answer to the question as it was asked: choose one that is "
                "computed from log-probabilities, such as mean_token_probability"
            )

    @classmethod
    def read(cls, values: object, where: str) -> "PairSettings":
        """The settings in a table of the other program, or ``SettingsError``.

        Parameters
        ----------
        values: the table.
        where: the place of the table, for error messages.

        >>> PairSettings.read({"draft": "small", "expert": "large"}, "model_info.bpac").loss
        'answer'
        """
        names = [field.name for field in fields(cls)]
        if not isinstance(values, Mapping) or not {"draft", "expert"} <= values.keys() <= set(names):
            raise SettingsError(f"{where} must have draft and expert, and may have score and loss; got {values!r}")
        try:
            return cls(**{str(name): value for name, value in values.items()})
        except (SettingsError, TypeError, ValueError) as error:
            raise SettingsError(f"{where}.{error}") from error

    @property
    def uncertainty(self) -> Score:
        """Computes how uncertain a draft is."""
        return named_score(self.score)

    def loss_of(self, draft: Answer, expert: Answer) -> float | None:
        """The loss of a draft against the expert's answer; none if the two cannot be compared."""
        return ToolCallLoss(False, AnswerLoss(LOSSES[self.loss]))(draft, expert)


def answer_of(completion: Mapping[str, Any]) -> Answer:
    """What is read of a chat completion; ``AnswerError`` if it is none."""
    return read_completion(json.dumps(completion).encode()).answer
