"""What a route has learned: the audits to learn from, and the models that were fitted to them."""

from collections.abc import Set
from typing import Any, NamedTuple, Protocol

from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Learned
from bpac.routing.learning.features import Feature
from bpac.routing.learning.fit import Regression
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.model import FrozenModel, OwnScore, RetiredScore, frozen
from bpac.routing.learning.samples import Sample, Samples
from bpac.routing.learning.scorer import Scorer, scorer

# After this multiple of the audits that a fit needs, too few losses mean that there is nothing to learn from.
PATIENCE = 2
# ``Sample(*values)`` without the cost of naming the fields.
new_tuple = tuple.__new__


class JoinedModel(NamedTuple):
    """A model that bets, and since when.

    Parameters
    ----------
    model: the model.
    rounds: how many audits it was fitted to.
    gain: how much more traffic it could accept, by an estimate that was made when it was fitted.
    step: how many decisions had been made when it joined.
    shared: whether audits of other games were among them.
    """

    model: FrozenModel | OwnScore
    rounds: int
    gain: float
    step: int
    shared: bool


class Pool(Protocol):
    """What several games learn together (``SharedScores``)."""

    def observed(self, number: int, step: int, sample: Sample) -> None:
        """An audit of a game has an outcome."""

    def offers(self, score: int) -> bool:
        """Whether that score has been learned, or can be learned now."""

    def next(self, score: int, tickets: int) -> Learned | None:
        """The entry of a score for a game that does not have it yet; none if it cannot be learned now."""


class Learning:
    """The models of the current epoch. A drift alarm ends it: what comes after it is learned again.

    Parameters
    ----------
    settings: when scores are learned, and from what.
    epsilon: the average loss that is allowed (ε).
    """

    def __init__(self, settings: LearnedScore, epsilon: float) -> None:
        self.settings = settings
        self.epsilon = epsilon
        self.samples = Samples()
        self.joined: list[JoinedModel] = []
        # How many scores a query has, and all of them, where its features need no closer look.
        self.count = 1
        self.quick_scores: Scorer = self._first_scores
        self.retired: frozenset[int] = frozenset()  # scores of models that bet no more
        self.entries = 0
        self.wants_more = True  # whether there are scores still to be learned in this epoch
        self._fit_at = settings.fit_at[0]  # how many audits the next one needs
        self.due = False  # whether there is a score to be written before the next decision
        # The games that learn together, and the number of this one among them.
        self.pool: Pool | None = None
        self.number = 0

    @property
    def enough(self) -> bool:
        """Whether it can be said if the next score is worth its share of α."""
        return self.wants_more and (self._can_fit or self.samples.count >= PATIENCE * self._fit_at)

    @property
    def _can_fit(self) -> bool:
        least, samples = self.settings.least_losses, self.samples
        return samples.count >= self._fit_at and least <= samples.losses <= samples.count - least

    def observed(self, decision: Decision, loss: float) -> None:
        """An audit has an outcome; only while there are scores still to be learned."""
        step, _, _, propensity, _, _, _, _, scores, _, _, features, _ = decision
        sample = new_tuple(Sample, ((scores[0], *features), loss, propensity))
        samples = self.samples
        samples.add(step, sample)
        if self.pool is not None:
            self.pool.observed(self.number, step, sample)
        elif samples.count >= self._fit_at:
            self.due = self.enough

    def next(self, tickets: int) -> Learned | None:
        """The entry of the next score; none if there is none after all.

        Parameters
        ----------
        tickets: number of the last ticket that was given out.
        """
        if self.pool is None:
            return self.fitted(tickets)
        # A game whose shares of α went back to its first score must not take another one from the games it shares with.
        entry = self.pool.next(len(self.joined) + 1, tickets) if self.wants_more else None
        self.due = entry is not None
        return entry

    def fitted(self, tickets: int) -> Learned:
        """The entry of the score that the samples lead to, or of the decision that none is worth its share of α."""
        score, count = len(self.joined) + 1, self.samples.count
        if not self._can_fit:
            return Learned(score, None, count, 0.0, tickets)
        regression = Regression(self.samples.in_order(), self.settings.ridge)
        gain = regression.promised_gain(self.epsilon)
        model = regression.model().to_json() if gain >= self.settings.least_gain else None
        return Learned(score, model, count, gain, tickets)

    def join(self, entry: Learned, step: int) -> None:
        """Let a model score the drafts from here on."""
        self.entries += 1
        self.joined.append(JoinedModel(frozen(entry.model), entry.rounds, entry.gain, step, entry.shared))
        self._joined_changed()
        if not self.wants_more:
            self.samples = Samples()
        self.due = self.enough if self.pool is None else self.pool.offers(len(self.joined) + 1)

    def _joined_changed(self) -> None:
        self.count = 1 + len(self.joined)
        self.quick_scores = self._first_scores
        gave_up = not self.settings.tries_all and bool(self.joined) and isinstance(self.joined[-1].model, OwnScore)
        self.wants_more = len(self.joined) < len(self.settings.fit_at) and not gave_up
        if self.wants_more:
            self._fit_at = self.settings.fit_at[len(self.joined)]

    def _first_scores(self, uncertainty: float, features: object) -> tuple[float, ...] | None:
        """All scores, after the function for them has been made: there may be many games that score no draft."""
        self.quick_scores = scorer(self._models(), len(self.settings.features))
        return self.quick_scores(uncertainty, features)

    def _models(self) -> list[FrozenModel | OwnScore | RetiredScore]:
        return [
            RetiredScore() if score in self.retired else joined.model
            for score, joined in enumerate(self.joined, start=1)
        ]

    def retire(self, scores: Set[int]) -> None:
        """Take note of the scores that do not bet: those of models are not computed any more."""
        models = [None, *(joined.model for joined in self.joined)]
        retired = frozenset(score for score in scores if isinstance(models[score], FrozenModel))
        if retired != self.retired:
            self.retired = retired
            self.quick_scores = self._first_scores

    def start_epoch(self) -> None:
        """Forget the models and the audits: traffic has changed."""
        self.joined.clear()
        self.retired = frozenset()
        self._joined_changed()
        self.samples = Samples()
        self.due = self.pool is not None and self.pool.offers(1)  # what others go on with may be tried again

    def shared_entries(self) -> list[Learned]:
        """The models that were learned together with other games, as entries."""
        return [
            Learned(score, one.model.to_json(), one.rounds, one.gain, shared=True)
            for score, one in enumerate(self.joined, start=1)
            if one.shared
        ]

    def scores(self, uncertainty: float, features: tuple[Feature, ...], count: int) -> tuple[float, ...]:
        """The score that was there first, and those that were learned, as they are recorded.

        Parameters
        ----------
        uncertainty: the score that was there first.
        features: of the draft.
        count: how many scores its query has.
        """
        known = (uncertainty, *features)
        return uncertainty, *[model.score(known) for model in self._models()[: count - 1]]

    def with_score(self, score: int, scores: tuple[float, ...], features: tuple[Feature, ...]) -> tuple[float, ...]:
        """All scores of a query that arrived while one that has retired since was in force: it is decided by that.

        Parameters
        ----------
        score: index of that score.
        scores: those of the draft, as they are recorded otherwise.
        features: of the draft.
        """
        value = self.joined[score - 1].model.score((scores[0], *features))
        return *scores[:score], value, *scores[score + 1 :]

    def state(self) -> dict[str, Any]:
        """All that a later start needs, as JSON values."""
        joined = [[model.to_json(), *rest] for model, *rest in self.joined]
        return {"entries": self.entries, "joined": joined, "samples": self.samples.state()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        self.entries = state["entries"]
        self.joined = [JoinedModel(frozen(model), *rest) for model, *rest in state["joined"]]
        self._joined_changed()
        self.samples.load(state["samples"])
        self.due = self.enough
