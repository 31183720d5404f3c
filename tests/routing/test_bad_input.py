import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from bpac import Decision, Router
from bpac.errors import (
    AlreadyResolved,
    BpacError,
    InputError,
    NotAudited,
    ObservationError,
    UnknownStep,
)
from bpac.routing.journal.entries import Entry
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json
from bpac.routing.policies import Fixed, Portfolio

NOT_A_FRACTION: list[Any] = [
    math.nan, math.inf, -math.inf, -0.1, 1.1, 2, "0.5", "", True, False, None, [0.5], {"a": 0.5}, 1j, np.bool_(True)
]  # fmt: skip
DEMANDING = ["portfolio", "budget", "paper", "paper-prior", "naive", "hoeffding", "offline", "oracle"]


def played(policy: str = "portfolio", **settings: Any) -> Router:
    """A router in the middle of its work: some outcomes known, some owed, one given up."""
    router = Router(0.3, 0.4, policy, seed=4, **settings)
    for step in range(60):
        decision = router.decide((step * 7 % 10) / 10)
        if decision.call_expert and step % 5:
            router.observe(decision, float(step % 9 == 0))
    router.forfeit(router.owed[0])
    return router


@contextmanager
def refused(router: Router, error: type[BpacError], says: str) -> Iterator[None]:
    """Assert that the block raises this error with these words, and that nothing has changed."""
    before = router.snapshot()
    with pytest.raises(error, match=says) as caught:
        yield
    assert type(caught.value) is error
    assert router.snapshot() == before


@pytest.mark.parametrize("policy", DEMANDING)
@pytest.mark.parametrize("value", NOT_A_FRACTION, ids=repr)
def test_decide_refuses_what_is_not_a_number_in_0_1(policy: str, value: Any) -> None:
    """``decide`` takes numbers in [0, 1] only, says what to do about a draft without a score, and changes nothing."""
    router = played(policy)
    with refused(
        router,
        InputError,
        r"^uncertainty must be .* got .*; if there is no score, call the expert without decide\(\)$",
    ):
        router.decide(value)


@pytest.mark.parametrize("policy", DEMANDING)
@pytest.mark.parametrize("value", NOT_A_FRACTION, ids=repr)
def test_observe_refuses_what_is_not_a_number_in_0_1(policy: str, value: Any) -> None:
    """``observe`` takes numbers in [0, 1] only, says what to do about a loss that is not known, and changes nothing."""
    router = played(policy)
    with refused(router, InputError, r"^loss must be .* got .*; if the loss is not known, call forfeit\(\)$"):
        router.observe(router.owed[0], value)


@pytest.mark.parametrize("value", NOT_A_FRACTION, ids=repr)
def test_observe_checks_the_loss_of_the_latest_decision_too(value: Any) -> None:
    """The outcome of the latest decision takes a shorter way, with the same check."""
    router = played()
    decision = router.decide(1.0)
    with pytest.raises(InputError, match=r"^loss must be .* got .*; if the loss is not known, call forfeit\(\)$"):
        router.observe(decision, value)
    router.observe(decision, 1)
    with pytest.raises(AlreadyResolved):
        router.observe(decision, 0.5)


@pytest.mark.parametrize("policy", DEMANDING)
def test_a_second_outcome_is_refused(policy: str) -> None:
    """A round has one outcome, whether it came late or at once."""
    router = played(policy)
    late, at_once = router.owed[0], router.decide(1.0)
    for decision in (late, at_once):
        router.observe(decision, 0.0)
        with refused(router, AlreadyResolved, rf"^step {decision.step} already has an outcome"):
            router.observe(decision, 0.0)
        with refused(router, AlreadyResolved, rf"^step {decision.step} already has an outcome"):
            router.forfeit(decision)


@pytest.mark.parametrize("policy", ["portfolio", "budget", "naive", "hoeffding", "oracle"])
def test_a_loss_reported_after_a_forfeit_is_accepted_once(policy: str) -> None:
    """Where outcomes are sums, a round that was given up still takes its loss, but no second outcome."""
    router = played(policy)
    decision = router.owed[0]
    router.forfeit(decision)
    with refused(router, AlreadyResolved, rf"^step {decision.step} was given up already; only its loss"):
        router.forfeit(decision)
    router.observe(decision, 0.5)
    with refused(router, AlreadyResolved, rf"^step {decision.step} already has an outcome"):
        router.observe(decision, 0.5)


@pytest.mark.parametrize("policy", ["paper", "paper-prior", "offline"])
def test_the_papers_policy_refuses_a_loss_after_a_forfeit(policy: str) -> None:
    """Where rounds are settled in order, one that was given up has been settled."""
    router = played(policy)
    decision = router.owed[0]
    router.forfeit(decision)
    with refused(router, AlreadyResolved, "already has an outcome"):
        router.observe(decision, 0.5)


def test_a_kept_draft_has_no_outcome() -> None:
    """The loss of a draft that was kept is never seen, so reporting one is refused."""
    router = Router(0.1, policy=Fixed(1.0))
    decision = router.decide(0.4)
    assert not decision.call_expert
    with refused(router, NotAudited, r"^the draft of step 1 was kept: .* must not be reported$"):
        router.observe(decision, 0.0)
    with refused(router, NotAudited, r"^the draft of step 1 was kept: .* must not be reported$"):
        router.forfeit(decision)


@pytest.mark.parametrize("step", [0, -1, 62, 10**9])
def test_a_step_that_was_never_decided_is_refused(step: int) -> None:
    """A decision whose step this router never made is unknown."""
    router = played()
    router.decide(1.0)
    stranger = router.owed[0]._replace(step=step)
    with refused(router, UnknownStep, f"^step {step} was never decided here: this router has made 61 decisions"):
        router.observe(stranger, 0.0)


def test_a_decision_of_another_router_is_refused() -> None:
    """A decision that differs from the one made here is refused, however little it differs."""
    router, other = played(), Router(0.3, 0.4, seed=4)
    owed = router.owed[0]
    for _ in range(owed.step):
        foreign = other.decide(0.123)
    for stranger in (foreign, owed._replace(propensity=0.5), owed._replace(uncertainty=0.123)):
        with refused(router, UnknownStep, f"^this router decided step {owed.step} differently: pass the Decision"):
            router.observe(stranger, 0.0)


@pytest.mark.parametrize("stranger", [None, 3, "decision", (1, 0.5), {"step": 1}], ids=repr)
def test_anything_but_a_decision_is_refused(stranger: Any) -> None:
    """``observe`` and ``forfeit`` take what ``decide`` returned and say so."""
    router = played()
    with refused(router, ObservationError, "take the Decision that decide returned, got"):
        router.observe(stranger, 0.0)
    with refused(router, ObservationError, "take the Decision that decide returned, got"):
        router.forfeit(stranger)


def test_an_equal_copy_of_a_decision_is_accepted() -> None:
    """A decision that went through JSON, or came from a copy, is recognised."""
    router = played()
    owed = router.owed[0]
    copy = entry_from_json(entry_to_json(owed))
    assert isinstance(copy, Decision)
    router.observe(copy, 0.0)
    assert owed not in router.owed


@pytest.mark.parametrize(
    "scores",
    [0.5, {}, {"a": 0.5}, {"a": 0.5, "b": 0.5, "c": 0.5}, {"a": 0.5, "x": 0.5}, [("a", 0.5)], None, "a"],
    ids=repr,
)
def test_several_scores_are_given_by_name(scores: Any) -> None:
    """A router with several scores needs exactly one for each name, in decisions and in history."""
    router = Router(0.1, policy=Portfolio(scores={"a": 0.5, "b": 0.5}))
    with refused(router, InputError, "needs a score for each of a, b, got"):
        router.decide(scores)
    with refused(router, InputError, "needs a score for each of a, b, got"):
        router.warm_start([(scores, 0.0)])


@pytest.mark.parametrize("value", NOT_A_FRACTION, ids=repr)
def test_each_of_several_scores_is_checked(value: Any) -> None:
    """The message names the score that is wrong."""
    router = Router(0.1, policy=Portfolio(scores={"a": 0.5, "b": 0.5}))
    with refused(router, InputError, r"^b must be a number in \[0, 1\], got .*; rescale it$"):
        router.decide({"a": 0.5, "b": value})


@pytest.mark.parametrize("row", [(1.5, 0.0), (0.5, -1.0), (None, 0.0), (0.5, None), ("0.5", 0.0), (0.5, True)])
def test_history_with_one_bad_row_changes_nothing(row: Any) -> None:
    """One bad row refuses all of the history, also the good rows before it."""
    entries: list[Entry] = []
    router = Router(0.1, journal=entries.append)
    with refused(router, InputError, "must be a number"):
        router.warm_start([(0.5, 0.0), row])
    assert len(entries) == 1


def test_history_after_the_first_decision_is_refused() -> None:
    """After the first decision history is refused, with the remedy."""
    router = played()
    with refused(router, InputError, "history comes before the first decision, and 60 were made: start a new router"):
        router.warm_start([(0.5, 0.0)])


@pytest.mark.parametrize("policy", ["budget", "naive", "hoeffding", "offline", "never"])
def test_only_betting_policies_have_wealth(policy: str) -> None:
    """Asking a policy without wealth for it is an error that names the policy."""
    with pytest.raises(InputError, match="keeps no wealth that belongs to one threshold"):
        Router(0.1, policy=policy).log_wealth(0.5)


@pytest.mark.parametrize("value", NOT_A_FRACTION, ids=repr)
def test_log_wealth_refuses_what_is_not_a_threshold(value: Any) -> None:
    """A threshold is a number in [0, 1]."""
    with pytest.raises(InputError, match=r"^threshold must be"):
        played().log_wealth(value)


@pytest.mark.parametrize(
    "forfeit",
    [lambda r, d: r.forfeit(d, 5), lambda r, d: r.forfeit(d, None), lambda r, d: r.forfeit(d, draft_served=1)],
    ids=["number", "nothing", "number for a verdict"],
)
def test_a_forfeit_that_could_not_be_read_back_is_refused(forfeit: Callable[[Router, Decision], None]) -> None:
    """A cause that is not a string, or a flag that is not a bool, is refused before it is written."""
    entries: list[Entry] = []
    router = Router(0.1, journal=entries.append)
    decision = router.decide(0.5)
    with refused(router, InputError, "cause|draft_served"):
        forfeit(router, decision)
    assert len(entries) == 2
