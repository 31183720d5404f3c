"""May the new model replace the old one? Evidence from journals in any order, and the verdict."""

import json
import math
import random
from collections.abc import Iterator

import pytest

from bpac import Router
from bpac.betting.bounds.fixed_sample import clopper_pearson_upper
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import (
    Entry,
    Expected,
    Labelled,
    Opened,
    Overdue,
    Resolved,
    Started,
    Stopped,
    Withdrawn,
)
from bpac.routing.switching import SwitchEvidence, SwitchVerdict, switch_verdict
from bpac.routing.switching import evidence as module
from tests.betting.rounds import a_round

ALPHA, EPSILON = 0.1, 0.1


def decided(
    step: int, ticket: int = 0, *, propensity: float = 1.0, call_expert: bool = True, epoch: int = 1
) -> Decision:
    """A round in which every draft is equally sure."""
    return a_round(0.0, propensity, step=step, call_expert=call_expert)._replace(ticket=ticket, epoch=epoch)


def after(*entries: Entry) -> SwitchEvidence:
    """The evidence of some entries, which must be the same if it is saved and loaded between any two of them."""
    evidence = SwitchEvidence()
    for entry in entries:
        evidence = SwitchEvidence.load(json.loads(json.dumps(evidence.state())))
        evidence.follow(entry)
    return evidence


def test_a_loss_counts_when_every_earlier_ticket_is_done() -> None:
    """Until then the round counts at its worst for both bounds."""
    held = after(Started(), decided(1, 2), Resolved(1, 1.0))
    assert (held.audits, held.estimate, held.loss.rounds, held.unknown) == (0, None, 1, 0)
    done = after(Started(), decided(1, 2), Resolved(1, 1.0), Withdrawn(1, "error"))
    assert (done.audits, done.estimate) == (1, 1.0)
    late = after(Started(), decided(1, 1), decided(2, 2), Resolved(2, 0.5))
    assert (late.audits, late.unknown, late.estimate) == (1, 1, 0.5)


def test_what_is_cut_off_counts_at_its_worst() -> None:
    """The earliest ticket under way is charged for good, and nothing beyond it is credited, whatever comes."""
    before: list[Entry] = [Started(), decided(1, 1), decided(2, 3), decided(3, 4, call_expert=False)]
    cut = after(*before, Started(), Resolved(1, 0.0), Resolved(2, 1.0), decided(4, 1), Resolved(4, 1.0))
    assert (cut.audits, cut.loss.rounds) == (2, 5)
    stopped = after(*before[:2], Stopped(), Started(), Resolved(1, 0.0), decided(2, 1), Resolved(2, 1.0))
    assert (stopped.audits, stopped.loss.rounds) == (2, 2)
    # A ticket is missing although none is said to be under way.
    missing = after(*before, Stopped(), Resolved(2, 1.0))
    assert (missing.audits, missing.loss.rounds) == (0, 4)


def test_overdue_tickets_are_charged_and_hold_up_nobody() -> None:
    """Their charge stays when they are decided after all; withdrawn, they change nothing."""
    base: list[Entry] = [Started(), decided(1, 2), Resolved(1, 1.0), Overdue(1), Overdue(1)]
    assert (after(*base).audits, after(*base).loss.rounds) == (1, 2)
    assert after(*base, decided(2, 1), Resolved(2, 0.0)).audits == 1
    assert after(*base, Withdrawn(1), decided(2, 3), Resolved(2, 0.0)).audits == 2
    early = after(Started(), Overdue(2), decided(1, 3), Resolved(1, 1.0), Withdrawn(2), decided(2, 1), Resolved(2, 0.0))
    assert (early.audits, early.loss.rounds) == (2, 3)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket that holds up too many others is charged, and the oldest of too many open audits is given up."""
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    stuck = after(Started(), *(decided(step, step + 1) for step in range(1, 5)))
    assert stuck.loss.rounds == 5
    assert after(*(decided(step) for step in range(1, 6)), Resolved(1, 1.0), Resolved(5, 1.0)).audits == 1


def test_every_kind_of_outcome_and_history() -> None:
    """Forfeits stay at their worst, refusals are fair, rows of history count, and an epoch begins anew."""
    forfeited = after(decided(1), Resolved(1, None, "deadline"), Resolved(1, 0.0), Expected())
    assert (forfeited.audits, forfeited.forfeits, forfeited.loss.rounds) == (0, 1, 1)
    refused = after(decided(1), Resolved(1, None, refused=True))
    assert (refused.audits, refused.forfeits, refused.loss.at_least(ALPHA)) == (0, 0, 0.0)
    warm = after(Labelled((0.0,), 0.5), Labelled((0.0,), None, 0.5, 0.5), Labelled((0.0,), None, refused=True))
    assert (warm.audits, warm.loss.rounds, warm.estimate) == (1, 3, 0.5)
    drifted = after(decided(1), Resolved(1, 1.0), decided(2, epoch=2), decided(3), Resolved(3, 1.0))
    assert (drifted.epoch, drifted.audits, drifted.loss.rounds) == (2, 0, 1)


def arriving(source: random.Random, mean: float, ahead: int, length: int) -> Iterator[tuple[int, float]]:
    """Tickets and losses in the order of their decisions: those that lose at once, others ``ahead`` arrivals later."""
    waiting: list[tuple[int, float]] = []
    for ticket in range(1, length + 1):
        loss = float(source.random() < mean)
        if loss:
            yield ticket, loss
        else:
            waiting.append((ticket, loss))
        if len(waiting) > ahead:
            yield waiting.pop(0)


def false_no(evidence: SwitchEvidence, source: random.Random, *, tickets: bool) -> bool:
    """Whether a stream whose mean is exactly the limit is ever found to be above it."""
    for step, (ticket, loss) in enumerate(arriving(source, EPSILON, 64, 300), start=1):
        evidence.follow(decided(step, ticket if tickets else 0))
        evidence.follow(Resolved(step, loss))
        if evidence.loss.log_money_below(EPSILON) >= -math.log(ALPHA):
            return True
    return False


@pytest.mark.no_cover
def test_fast_losers_do_not_lead_to_a_false_no() -> None:
    """With 64 requests under way of which the losing ones end first, the order of arrival keeps the chance below α.

    Counted as they come, without tickets, nearly every stream is found to lose too much.
    """
    source, streams = random.Random(3), 150
    wrong = {
        tickets: sum(false_no(SwitchEvidence(), source, tickets=tickets) for _ in range(streams))
        for tickets in (True, False)
    }
    assert clopper_pearson_upper(streams - wrong[True], streams, 0.001) >= 1.0 - ALPHA
    assert clopper_pearson_upper(streams - wrong[False], streams, 0.001) < 0.5


def played(mean: float, rounds: int, seed: int = 1, explore: str = "serve") -> tuple[Router, SwitchEvidence]:
    """A router in which every draft has the score 0 and loses 1 with a probability."""
    evidence, source = SwitchEvidence(), random.Random(seed)
    router = Router(EPSILON, ALPHA, explore=explore, journal=evidence.follow, seed=seed)  # type: ignore[arg-type]
    for _ in range(rounds):
        decision = router.decide(0.0)
        if decision.call_expert:
            router.observe(decision, float(source.random() < mean))
    return router, evidence


@pytest.mark.parametrize("explore", ["serve", "shadow"])
def test_the_verdict_in_words(explore: str) -> None:
    """Yes, no and not yet, each with its numbers; a model that is clearly better or worse is found out soon."""
    good, bad, young = (
        switch_verdict(*played(mean, rounds, explore=explore)) for mean, rounds in ((0.02, 400), (0.3, 150), (0.02, 20))
    )
    assert (good.answer, bad.answer, young.answer) == ("yes", "no", "not_yet")
    assert good.text.startswith("yes: its average loss is at most ")
    assert bad.at_least > bad.allowed
    assert bad.text.startswith(f"no: its average loss is at least {bad.at_least:.2%}")
    assert "more audits if the loss stays as it is" in young.text
    assert young.more is not None
    assert 20 < young.more < 400
    assert (good.more, bad.more) == (None, None)
    assert (good.allowed == EPSILON) is (explore == "shadow")
    assert SwitchVerdict.from_json(json.loads(json.dumps(bad.to_json()))) == bad


def test_how_many_more_requests_it_takes() -> None:
    """The estimate is of the right size in both directions, and there is none at the limit itself."""
    worse = switch_verdict(*played(0.2, 30, seed=2))
    assert worse.answer == "not_yet"
    assert worse.more is not None
    assert worse.more < 500
    evidence = SwitchEvidence()
    router = Router(EPSILON, ALPHA, journal=evidence.follow, seed=1, explore="shadow")
    for number in range(20):
        router.observe(router.decide(0.0), float(number % 10 == 0))
    assert switch_verdict(router, evidence).more is None
    first = switch_verdict(Router(EPSILON, ALPHA), SwitchEvidence())
    assert (first.answer, first.estimate, first.at_least, first.at_most) == ("not_yet", None, 0.0, 1.0)
    assert "more audits if none has a loss" in first.text
    naive = switch_verdict(Router(EPSILON, ALPHA, policy="paper"), SwitchEvidence())
    assert naive.more is None


def test_without_losses_the_estimate_is_exact() -> None:
    """The answer is yes after as many audits as were announced, at the start and in the middle."""
    evidence = SwitchEvidence()
    router = Router(EPSILON, ALPHA, journal=evidence.follow, seed=1)
    announced = []
    while (found := switch_verdict(router, evidence)).answer == "not_yet":
        announced.append(found.more)
        router.observe(router.decide(0.0), 0.0)
    assert announced == list(range(len(announced), 0, -1))


def test_after_a_drift_alarm_the_answer_is_not_yet() -> None:
    """What was found before an alarm says nothing about the model after it, even before the next decision."""
    router, evidence = played(0.0, 300)
    assert switch_verdict(router, evidence).answer == "yes"
    while router.epoch == 1:
        decision = router.decide(0.0)
        if decision.call_expert:
            router.observe(decision, 1.0)
    found = switch_verdict(router, evidence)
    assert (found.answer, found.rounds, found.epoch) == ("not_yet", 0, 2)
    assert found.confidence > 1.0 - ALPHA


@pytest.mark.parametrize("told", [True, False])
def test_a_ticket_that_is_withdrawn_first_after_an_alarm_holds_up_nothing(told: bool) -> None:
    """An epoch numbers its tickets anew: the first may be withdrawn before any is decided.

    Evidence that is not told the epoch credits nothing behind it, which is valid and useless.
    """
    evidence = SwitchEvidence()
    opening = Opened(Router(EPSILON, ALPHA).settings.to_json())
    router = Router.rebuild([opening], journal=lambda entry: evidence.follow(entry, router.epoch * told), seed=1)
    while router.epoch == 1:
        decision = router.decide(0.0, ticket=router.arrive())
        if decision.call_expert:
            router.observe(decision, float(router.step > 200))
    router.withdraw(router.arrive(), "no-score")
    for _ in range(100):
        router.observe(router.decide(0.0, ticket=router.arrive()), 1.0)
    assert router.epoch == evidence.epoch == 2
    found = switch_verdict(router, evidence)
    assert (found.answer, found.audits) == (("no", 100) if told else ("not_yet", 0))


def test_a_crash_before_the_first_decision_of_an_epoch_is_charged_to_it() -> None:
    """A query of the new epoch may have been under way."""
    evidence = after(Started(), decided(1, 1), Resolved(1, 1.0))
    evidence.follow(Started(), 2)
    assert (evidence.epoch, evidence.loss.rounds, evidence.audits) == (2, 1, 0)


@pytest.mark.no_cover
def test_both_answers_are_right_with_the_confidence() -> None:
    """Above the limit a yes, and at the limit a no, ever comes in at most a share α of streams.

    A verdict by the plain mean of 30 or more audits is wrong in most of them.
    """
    streams, wrong = 200, [0, 0, 0]
    for seed in range(streams):
        evidence, source = SwitchEvidence(), random.Random(seed)
        router = Router(EPSILON, ALPHA, explore="shadow", memory="latched", journal=evidence.follow, seed=seed)
        failed, mean = [False] * 3, EPSILON * 1.02
        losses = 0.0
        for number in range(1, 201):
            decision = router.decide(0.0)
            loss = float(source.random() < mean)
            losses += loss
            if decision.call_expert:
                router.observe(decision, loss)
            failed[0] |= router.threshold > 0.0
            failed[1] |= bool(loss) and evidence.loss.log_money_below(mean) >= -math.log(ALPHA)
            failed[2] |= number >= 30 and losses / number <= EPSILON
        wrong = [count + one for count, one in zip(wrong, failed, strict=True)]
    assert clopper_pearson_upper(streams - wrong[0], streams, 0.001) >= 1.0 - ALPHA
    assert clopper_pearson_upper(streams - wrong[1], streams, 0.001) >= 1.0 - ALPHA
    assert clopper_pearson_upper(streams - wrong[2], streams, 0.001) < 0.5
