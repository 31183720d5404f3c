"""Scores that several games learn together."""

from dataclasses import replace

import pytest

from bpac import Router
from bpac.errors import SettingsError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Entry, Learned
from bpac.routing.journal.entry_lines import entry_to_json
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.learning.shared_scores import SharedScores
from bpac.routing.segments import Segments
from tests.routing.learning.drafts import LEARN, drafts, learner, send


def test_a_small_game_has_the_score_that_a_large_one_has_learned() -> None:
    """It bets on it for itself, from its first query on; its journal holds the score, and rebuilds it."""
    journals: dict[str, list[Entry]] = {}

    def start(name: str, alpha: float) -> Router:
        journals[name] = []
        return learner(journals[name].append)

    segments = Segments(start, alpha=0.1, shared=SharedScores())
    send(segments.router("large"), drafts(300))
    send(segments.router("small"), drafts(3, seed=2))
    large, small = ([entry for entry in journals[name] if isinstance(entry, Learned)] for name in ("large", "small"))
    assert [entry.model for entry in small] == [entry.model for entry in large]
    assert all(entry.shared for entry in (*small, *large))
    assert isinstance(journals["small"][1], Learned)
    for name, entries in journals.items():
        assert Router.rebuild(entries).snapshot() == segments[name].snapshot()
        assert audit_journal([entry_to_json(entry) + "\n" for entry in entries]).differences == []
    assert [score.shared for score in segments["small"].scores()] == [False, True, True]


def test_audits_of_all_games_are_learned_from() -> None:
    """Two games that have half of the audits each learn as soon as one that has all of them."""
    shared = SharedScores()
    games = [learner(), learner()]
    for game in games:
        game.share_scores(shared)
    rows = drafts(120)
    for i in range(0, 120, 2):
        send(games[0], [rows[i]])
        send(games[1], [rows[i + 1]])
    assert [game.scores()[1].rounds for game in games] == [60, 60]


def test_what_comes_after_the_last_fit_is_not_kept() -> None:
    """A game that has not decided since then may still report outcomes."""
    shared = SharedScores()
    games = [learner(), learner()]
    for game in games:
        game.share_scores(shared)
    late = games[1].decide(0.5, features=(1.0, "task 0"))
    send(games[0], drafts(500))
    games[1].observe(late, 1.0)
    assert len(games[0].scores()) == 3
    assert len(games[1].scores()) == 1


def test_games_that_start_again_share_what_they_have() -> None:
    """Samples of journals that are read back count, and so does a score that one of them holds."""
    journals: list[list[Entry]] = [[], []]
    shared = SharedScores()
    games = [learner(journal.append) for journal in journals]
    for game in games:
        game.share_scores(shared)
    send(games[0], drafts(50))
    again = SharedScores()
    games = [Router.rebuild(journal, journal=journal.append, seed=4) for journal in journals]
    for game in games:
        game.share_scores(again)
    send(games[1], drafts(12, seed=2))
    assert [len(game.scores()) for game in games] == [1, 2]
    last = SharedScores()
    games = [Router.rebuild(journal, journal=journal.append, seed=4) for journal in reversed(journals)]
    for game in games:
        game.share_scores(last)
    send(games[1], drafts(1))
    assert [game.scores()[1].rounds for game in games] == [60, 60]


def test_after_a_drift_alarm_the_shared_score_is_tried_again() -> None:
    """The other games go on with it, so it may still be good; its wealth starts from 1."""
    router = learner()
    router.share_scores(SharedScores())
    send(router, [row._replace(loss=0.0 if i > 100 else row.loss) for i, row in enumerate(drafts(500))])
    while router.epoch == 1:
        decision = router.decide(0.01, features=(0.1, "task 0"))
        if decision.call_expert:
            router.observe(decision, 1.0)
    assert len(router.scores()) == 1
    send(router, drafts(1))
    assert len(router.scores()) == 2


def test_routers_that_share_must_learn_alike() -> None:
    """Different features cannot be learned from together, and a router that learns nothing shares nothing."""
    shared = SharedScores()
    with pytest.raises(SettingsError, match="learns no score"):
        Router(0.1).share_scores(shared)
    assert not shared.offers(1)
    assert shared.next(1, 0) is None
    learner().share_scores(shared)
    with pytest.raises(SettingsError, match="same settings"):
        learner(learn=LearnedScore(("other",))).share_scores(shared)
    assert LEARN.own_share == pytest.approx(0.7)


@pytest.mark.parametrize(("tries_all", "shares"), [(False, [1.0, 0.0]), (True, [0.9, 0.0, 0.1])])
def test_a_share_that_went_back_is_not_taken_for_a_score_of_others(tries_all: bool, shares: list[float]) -> None:
    """The first score bets it by then, so that a score of the others would exceed α; their next one has a share."""
    learn = replace(LEARN, least_gain=1.0, tries_all=tries_all)
    journal: list[Entry] = []
    alone, other = learner(journal.append, learn=learn), learner(learn=learn)
    send(alone, [draft._replace(features=(None, None)) for draft in drafts(120)])
    shared = SharedScores()
    other.share_scores(shared)
    send(other, [draft._replace(uncertainty=0.5) for draft in drafts(900)])
    alone.share_scores(shared)
    send(alone, drafts(5))
    assert [score.share for score in other.scores()] == [0.7, 0.2, 0.1]
    assert [score.share for score in alone.scores()] == pytest.approx(shares)
    assert Router.rebuild(journal).snapshot() == alone.snapshot()


def test_losses_that_become_known_late_do_not_end_learning() -> None:
    """Audits that were given up count as losses until their loss is known; then there may be too few for a fit."""
    shared = SharedScores()
    games = [learner(), learner()]
    for game in games:
        game.share_scores(shared)
    rows = drafts(100)
    audits: list[Decision] = []
    while len(audits) < LEARN.fit_at[0]:
        draft = rows.pop()
        decision = games[0].decide(draft.uncertainty, features=draft.features)
        if decision.call_expert:
            audits.append(decision)
            if len(audits) <= LEARN.least_losses:
                games[0].forfeit(decision)
            else:
                games[0].observe(decision, 0.0)
    games[0].observe(audits[0], 0.0)
    send(games[1], drafts(100, seed=2))
    first = games[1].scores()[1]
    assert first.share == 0.2
    assert first.rounds is not None
    assert first.rounds > 60
