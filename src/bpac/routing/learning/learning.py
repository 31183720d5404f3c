"""What a route has learned: the audits to learn from, and the models that were fitted to them."""

from typing import Any, NamedTuple

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Learned
from bpac.routing.learning.features import Feature
from bpac.routing.learning.fit import fit
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.model import FrozenModel
from bpac.routing.learning.samples import Sample, Samples


class JoinedModel(NamedTuple):
    """A model that bets, and since when.

    Parameters
    ----------
    model: the model.
    rounds: how many audits it was fitted to.
    step: how many decisions had been made when it joined.
    shared: whether audits of other games were among them.
    """

    model: FrozenModel
    rounds: int
    step: int
    shared: bool


class Learning:
    """The models of the current epoch.

    After a drift alarm the latest model goes on: it depends on the past only, and bets from a wealth of 1 again. The
    audits of the epoch before are not learned from any more.

    Parameters
    ----------
    settings: when scores are learned, and from what.
    """

    __slots__ = ("due", "entries", "joined", "samples", "settings")

    def __init__(self, settings: LearnedScore) -> None:
        self.settings = settings
        self.samples = Samples()
        self.joined: list[JoinedModel] = []
        self.entries = 0
        self.due = False  # whether there is enough to learn the next score from

    def observed(self, decision: Decision, loss: float) -> None:
        """An audit has an outcome."""
        if len(self.joined) == len(self.settings.fit_at):
            return
        own = decision.uncertainties[0]
        self.samples.add(decision.step, Sample((own, *decision.features), loss, decision.propensity))
        self._set_due()

    def next(self, tickets: int) -> Learned:
        """The entry of the next score.

        Parameters
        ----------
        tickets: number of the last ticket that was given out.
        """
        model = fit(self.samples.in_order(), self.settings.ridge)
        return Learned(len(self.joined) + 1, model.to_json(), self.samples.count, tickets)

    def join(self, entry: Learned, step: int) -> None:
        """Let a model score the drafts from here on."""
        self.entries += 1
        self.joined.append(JoinedModel(FrozenModel(entry.model), entry.rounds, step, entry.shared))
        if len(self.joined) == len(self.settings.fit_at):
            self.samples = Samples()
        self._set_due()

    def start_epoch(self) -> None:
        """Keep the latest model, and learn the next one from what comes."""
        del self.joined[:-1]
        self.samples = Samples()
        self._set_due()

    def scores(self, uncertainty: float, features: tuple[Feature, ...], count: int) -> tuple[float, ...]:
        """The score that was there first, and those that were learned.

        Parameters
        ----------
        uncertainty: the score that was there first.
        features: of the draft.
        count: how many scores its query has.
        """
        joined = self.joined
        if count == 1:
            return (uncertainty,)
        known = (uncertainty, *features)
        if count == 2:  # noqa: PLR2004  # the most common case, without a loop
            return uncertainty, joined[0].model.score(known)
        return uncertainty, *[model.score(known) for model, *_ in joined[: count - 1]]

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        joined = [[model.to_json(), *rest] for model, *rest in self.joined]
        return {"entries": self.entries, "joined": joined, "samples": self.samples.state()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.entries = state["entries"]
        self.joined = [JoinedModel(FrozenModel(model), *rest) for model, *rest in state["joined"]]
        self.samples.load(state["samples"])
        self._set_due()

    def _set_due(self) -> None:
        settings, samples = self.settings, self.samples
        done = len(self.joined)
        self.due = (
            done < len(settings.fit_at)
            and samples.count >= settings.fit_at[done]
            and settings.least_losses <= samples.losses <= samples.count - settings.least_losses
        )
