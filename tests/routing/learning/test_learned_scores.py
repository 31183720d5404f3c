"""Routers that learn scores: what joins, what it bets on, and what is in force."""

import json
from typing import Any

import pytest

from bpac import Router
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.errors import InputError, JournalError, SettingsError
from bpac.routing.audit.audit import audit_journal
from bpac.routing.bettors import Candidates
from bpac.routing.decision import Decision
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry, Learned, Resolved
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.journal.snapshot import load_snapshot
from bpac.routing.learning.learned_score import LearnedScore
from bpac.routing.policies import Portfolio
from tests.routing.learning.drafts import LEARN, drafts, learner, send


def played(count: int = 600, **options: Any) -> tuple[Router, list[Entry]]:
    """A router that has decided some drafts, and its journal."""
    entries: list[Entry] = []
    router = learner(entries.append, **options)
    send(router, drafts(count))
    return router, entries


def lines(entries: list[Entry]) -> list[str]:
    """The journal as text."""
    return [entry_to_json(entry) + "\n" for entry in entries]


def test_scores_join_when_enough_audits_have_an_outcome() -> None:
    """Each is written before the first decision that has it, and no earlier decision has it."""
    router, entries = played()
    learned = [(i, entry) for i, entry in enumerate(entries) if isinstance(entry, Learned)]
    assert [entry.score for _, entry in learned] == [1, 2]
    assert [entry.rounds for _, entry in learned] == [60, 240]
    counts = [len(entry.uncertainties) for entry in entries if isinstance(entry, Decision)]
    assert sorted(set(counts)) == [1, 2, 3]
    assert counts == sorted(counts)
    for at, entry in learned:
        following = entries[at + 1]
        assert isinstance(following, Decision)
        assert len(following.uncertainties) == entry.score + 1
    own, first, second = router.scores()
    assert (own.rounds, first.rounds, second.rounds) == (None, 60, 240)
    assert [one.share for one in (own, first, second)] == pytest.approx([0.7, 0.2, 0.1])
    assert sum(one.in_force for one in router.scores()) == 1


def test_each_score_bets_on_the_rounds_after_it_joined() -> None:
    """Its wealth is that of a router's bettor which is shown those rounds and no others."""
    router, entries = played()
    outcomes = {entry.step: entry.loss or 0.0 for entry in entries if isinstance(entry, Resolved)}
    bettor = router._route.bettor
    assert isinstance(bettor, Candidates)
    for score in range(3):
        wealth = bettor._start(score)
        for entry in entries:
            if isinstance(entry, Decision) and len(entry.uncertainties) > score:
                wealth.decided(entry)
                if entry.call_expert:
                    wealth.resolve(entry, outcomes[entry.step])
        assert wealth.state() == bettor.wealths[score].state()
        assert wealth.threshold == bettor.wealths[score].threshold


def test_a_learned_score_that_accepts_more_comes_into_force() -> None:
    """Then the decision's uncertainty is the learned one; and fewer experts are called than without it."""
    router, entries = played(2500)
    assert router.scores()[0].in_force is False
    last = entries[-1] if isinstance(entries[-1], Decision) else entries[-2]
    assert isinstance(last, Decision)
    assert last.uncertainty in last.uncertainties[1:]
    plain = Router(0.15, 0.1, seed=3)
    for uncertainty, _, loss in drafts(2500):
        decision = plain.decide(uncertainty)
        if decision.call_expert:
            plain.observe(decision, loss)
    with_, without = router.summary().expert_call_rate, plain.summary().expert_call_rate
    assert with_ is not None
    assert without is not None
    assert with_ < without - 0.05


@pytest.mark.no_cover
@pytest.mark.parametrize("exploration", [None, Constant(0.2)])
@pytest.mark.parametrize("cut", [0, 30, 100, 333, 800])
def test_the_journal_and_snapshots_lead_to_the_same_bits(cut: int, exploration: Any) -> None:
    """From any point on, a router goes on as the one that wrote the journal."""
    router, entries = played(exploration=exploration)
    read = [entry_from_json(line) for line in lines(entries)]
    half = Router.rebuild(read[: cut + 1])
    taken = json.loads(json.dumps(half.snapshot()))
    for again in (Router.rebuild(read), Router.rebuild(read[cut + 1 :], snapshot=taken)):
        assert again.snapshot() == router.snapshot()
    more = drafts(200, seed=9)
    again = Router.rebuild(read, seed=5)
    other = Router.rebuild([], snapshot=router.snapshot(), seed=5)
    send(again, more)
    send(other, more)
    assert again.snapshot() == other.snapshot()


def test_an_audit_finds_nothing_to_object_to() -> None:
    """Scores are fitted and drafts scored again, to the same values."""
    _, entries = played()
    audit = audit_journal(lines(entries))
    assert audit.differences == []
    assert audit.rounds == 600


def changed(entries: list[Entry], **values: Any) -> list[Entry]:
    """The journal with another first learned score."""
    return [entry._replace(**values) if isinstance(entry, Learned) and entry.score == 1 else entry for entry in entries]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"rounds": 61}, "learned score 1: audits with an outcome"),
        ({"gain": 0.123}, "learned score 1: estimated gain"),
        (
            {"model": {"intercept": 0.0, "terms": [{"knots": [], "values": [], "words": {}, "missing": 0.0}] * 3}},
            "learned score 1",
        ),
    ],
)
def test_an_audit_finds_a_score_that_was_not_learned_from_the_journal(values: dict[str, Any], what: str) -> None:
    """Whoever chose the weights otherwise is found out, and so are scores that do not follow from the weights."""
    _, entries = played()
    found = [difference.what for difference in audit_journal(lines(changed(entries, **values))).differences]
    assert what in found
    if "model" in values:
        assert any(one.startswith("scores of step") for one in found)


def test_an_audit_finds_a_score_that_came_too_early() -> None:
    """With fewer audits than the settings say, the fit could have been chosen by its result."""
    _, entries = played(80)
    at = next(i for i, entry in enumerate(entries) if isinstance(entry, Learned))
    early = [*entries[:31], entries[at]]
    assert [one.what for one in audit_journal(lines(early)).differences] == ["learned score 1: audits with an outcome"]


def test_an_audit_finds_a_decision_by_another_score() -> None:
    """The score in force is the one that accepts most, not the one that suits."""
    _, entries = played(300)
    at = max(i for i, entry in enumerate(entries) if isinstance(entry, Decision) and entry.propensity == 1.0)
    decision = entries[at]
    assert isinstance(decision, Decision)
    other = max(decision.uncertainties)
    if other == decision.uncertainty:
        other = sorted(decision.uncertainties)[1]
    entries[at] = decision._replace(uncertainty=max(other, decision.threshold))
    spoiled = lines([*entries[:at], decision._replace(uncertainty=other, threshold=0.0, least_propensity=1.0)])
    assert any("score in force" in one.what for one in audit_journal(spoiled).differences)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"score": 2}, "missing or repeated"),
        ({"model": {}}, "not a learned score"),
        ({"model": {"intercept": 0.0, "terms": []}}, "other features"),
        ({"gain": -1.0}, "contradicts itself"),
        ({"rounds": -1}, "contradicts itself"),
        ({"tickets": 4}, "contradicts itself"),
    ],
)
def test_a_learned_entry_that_no_router_wrote_is_refused(values: dict[str, Any], what: str) -> None:
    """Its scores could not be used."""
    _, entries = played(100)
    with pytest.raises(JournalError, match=what):
        Router.rebuild(changed(entries, **values))


def test_a_learned_entry_needs_a_router_that_learns() -> None:
    """A journal whose settings do not learn has none."""
    entries: list[Entry] = []
    Router(0.1, journal=entries.append)
    with pytest.raises(JournalError, match="none is learned"):
        Router.rebuild([*entries, Learned(1, {}, 0, 0.0)])


@pytest.mark.parametrize(
    "values",
    [
        {"features": ()},
        {"features": (1.0,)},
        {"features": (float("nan"), "a")},
        {"uncertainties": ()},
        {"uncertainties": (0.5, 0.5)},
        {"uncertainty": 0.123456, "uncertainties": (0.5,)},
    ],
)
def test_a_decision_without_its_scores_or_features_is_refused(values: dict[str, Any]) -> None:
    """What was known of a draft is part of its decision."""
    entries: list[Entry] = []
    router = learner(entries.append)
    decision = router.decide(0.5, features=(1.0, "a"))
    entries[-1] = decision._replace(**values)
    with pytest.raises(JournalError, match="contradicts itself"):
        Router.rebuild(entries)


def test_a_failed_write_of_a_score_changes_nothing() -> None:
    """The next decision writes it again: a crash between fit and entry leaves no trace."""
    entries: list[Entry] = []
    failing = False

    def write(entry: Entry) -> None:
        if failing and isinstance(entry, Learned):
            raise OSError("disk full")
        entries.append(entry)

    router = learner(write)
    rows = drafts(100)
    learning = router._route.learning
    assert learning is not None
    while not learning.due:
        send(router, [rows.pop(0)])
    before = router.snapshot()
    failing = True
    for _ in range(2):
        with pytest.raises(OSError, match="disk full"):
            router.decide(0.5, features=(1.0, "a"))
    assert router.snapshot() == before
    failing = False
    send(router, rows)
    assert sum(isinstance(entry, Learned) for entry in entries) == 1
    assert Router.rebuild(entries).snapshot() == router.snapshot()


def test_outcomes_in_any_order_lead_to_the_same_fit() -> None:
    """Only what is known when the score is learned counts, not the order in which it came."""
    models = []
    for backwards in (False, True):
        entries: list[Entry] = []
        router = learner(entries.append)
        decisions = [router.decide(row.uncertainty, features=row.features) for row in drafts(60)]
        pairs = list(zip(decisions, drafts(60), strict=True))
        for decision, row in reversed(pairs) if backwards else pairs:
            router.observe(decision, row.loss)
        router.decide(0.5, features=(1.0, "a"))
        models += [entry.model for entry in entries if isinstance(entry, Learned)]
    assert len(models) == 2
    assert models[0] == models[1]


def test_forfeits_count_as_losses_and_refusals_do_not_count() -> None:
    """A forfeit is what the wealth takes it for, unless its loss comes after all; a refusal has no loss."""
    router = learner()
    rows = drafts(3)
    decisions = [router.decide(row.uncertainty, features=row.features) for row in rows]
    router.forfeit(decisions[0])
    router.refuse(decisions[1])
    learning = router._route.learning
    assert learning is not None
    assert (learning.samples.count, learning.samples.losses) == (1, 1.0)
    router.observe(decisions[0], 0.25)
    assert (learning.samples.count, learning.samples.losses) == (1, 0.25)
    again = load_snapshot(router.snapshot()).learning
    assert again is not None
    assert again.state() == learning.state()


def test_after_a_drift_alarm_scores_are_learned_again() -> None:
    """An epoch starts without learned scores: traffic has changed. Late outcomes of the old one teach nothing."""
    entries: list[Entry] = []
    router = learner(entries.append)
    send(router, [row._replace(loss=0.0 if i > 100 else row.loss) for i, row in enumerate(drafts(500))])
    assert router.epoch == 1
    late = next(d for d in iter(lambda: router.decide(0.5, features=(9.0, "task 2")), None) if d.call_expert)
    while router.epoch == 1:
        decision = router.decide(0.01, features=(0.1, "task 0"))
        if decision.call_expert:
            router.observe(decision, 1.0)
    assert len(router.scores()) == 1
    router.observe(late, 1.0)
    learning = router._route.learning
    assert learning is not None
    assert learning.samples.count == 0
    send(router, drafts(200, seed=5))
    assert len(router.scores()) == 2
    assert Router.rebuild(entries).snapshot() == router.snapshot()
    assert audit_journal(lines(entries)).differences == []


def test_history_counts_for_the_score_that_was_there_first() -> None:
    """It has no features, so nothing is learned from it; an older game that learned is history without its scores."""
    router, entries = played(300)
    new = learner()
    new.warm_start([(0.1, 0.0)] * 50)
    new.warm_start_from(entries)
    assert new.labelled == 350
    plain = Router(0.15, 0.1, Portfolio())
    plain.warm_start_from(entries)
    assert plain.labelled == router.step
    bettor, other = new._route.bettor, plain._route.bettor
    assert isinstance(bettor, Candidates)
    assert isinstance(other, PortfolioWealth)
    assert len(bettor.wealths) == 1


def test_the_wealth_of_the_score_in_force_can_be_asked_for() -> None:
    """As for other routers."""
    router, _ = played(1500)
    bettor = router._route.bettor
    assert isinstance(bettor, Candidates)
    wealth = bettor.wealths[bettor.active]
    assert isinstance(wealth, PortfolioWealth)
    assert router.log_wealth(0.1) == wealth.log_wealth(0.1)


def test_features_need_a_policy_that_learns() -> None:
    """Otherwise they would be dropped without a word; and those that are missing are not known."""
    router = Router(0.1)
    for _ in range(2):  # coins are drawn before the first decision, and not before the second
        with pytest.raises(InputError, match="learns no score"):
            router.decide(0.5, features={"length": 1.0})
        router.decide(0.5)
    assert learner().decide(0.5).features == (None, None)
    assert Router(0.1).scores() == ()


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"features": ()}, "one or more names"),
        ({"features": "ab"}, "one or more names"),
        ({"features": (3,)}, "must be a string"),
        ({"features": ("a", "a")}, "different names"),
        ({"features": ("",)}, "different names"),
        ({"fit_at": (50, 50), "shares": (0.1, 0.1)}, "must increase"),
        ({"fit_at": (50,), "shares": (0.1, 0.1)}, "needs a share"),
        ({"fit_at": (50,), "shares": (1.0,)}, "less than 1"),
        ({"least_gain": 1.5}, "least_gain"),
        ({"ridge": 0.0}, "above 0"),
        ({"fit_at": (9,)}, "at least 10"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(values: dict[str, Any], what: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(SettingsError, match=what):
        LearnedScore(**({"features": ("a",)} | values))


@pytest.mark.parametrize("options", [{"scores": {"a": 0.5, "b": 0.5}}, {"assume": "any"}])
def test_what_does_not_go_together_is_refused(options: dict[str, Any]) -> None:
    """Several given scores, and arbitrary streams, have no learned ones."""
    with pytest.raises(SettingsError, match="leave out one"):
        Portfolio(learn=LEARN, **options)


def test_settings_without_learning_are_written_as_before() -> None:
    """A journal of a router that learns nothing does not mention it."""
    assert "learn" not in Router(0.1).settings.to_json()["policy"]
    assert learner().settings.to_json()["policy"]["learn"]["kind"] == "LearnedScore"


def test_an_audit_is_worth_grading_if_any_score_can_use_it() -> None:
    """Every one is while there is something to learn; then those that some score still has a prospect for."""
    learn = LearnedScore(("length", "task"), fit_at=(60,), least_losses=5.0, least_gain=0.0, retires=False)
    router = learner(learn=learn)
    hopeless = router.decide(0.999, features=(99.0, "task 2"))
    assert router.worth_grading(hopeless)
    router.forfeit(hopeless)
    send(router, drafts(4000))
    asked = [
        router.decide(uncertainty, features=features)
        for uncertainty, features in ((0.999, (99.0, "task 2")), (0.999, (0.01, "task 0")), (0.001, (99.0, "task 2")))
    ]
    worth = [router.worth_grading(decision) for decision in asked]
    assert worth == [False, True, True]
    certain = asked[0]._replace(uncertainty=1.0, uncertainties=(1.0, 1.0))
    assert not router.worth_grading(certain)


def test_the_models_that_compete_can_be_asked_for() -> None:
    """In the order in which they joined; a router that learns nothing has none."""
    router = learner()
    assert Router(0.1).learned_models() == router.learned_models() == ()
    send(router, drafts(300))
    assert len(router.learned_models()) == len(router.scores()) - 1 > 0
