"""What a cascade's router refuses, and that nothing has changed then."""

import random
from typing import Any

import pytest

from bpac.errors import InputError, JournalError, ObservationError, SettingsError
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import CascadeRound, StageOutcomes
from bpac.routing.cascade.router import CascadeRouter
from bpac.routing.decision import Decision
from bpac.routing.journal.entries import Fitted, Labelled, Resolved
from bpac.routing.router import Router
from tests.routing.cascade.gateways import PRICES, journalled, policy, serve

FULL = [(0.3, 1.0), (0.1, 2.0)]


def first_decision(router: CascadeRouter) -> Decision:
    """The first decision, after an answer of the first model."""
    walk = router.walk()
    walk.answered(*FULL[0])
    return router.decide(walk)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prices": (1.0,)}, "at least two models"),
        ({"prices": (1.0, 0.0)}, "above 0"),
        ({"features": -1}, "features"),
        ({"first": 3}, "stages of each rule"),
        ({"first": ((2, 1),)}, "increase"),
        ({"first": ((3,),)}, "a stage"),
        ({"fit_at": (100, 50)}, "increase"),
        ({"fit_at": (1, 2)}, "fit_at"),
        ({"fitted_shares": (0.5,)}, "one share for each fit"),
        ({"fitted_shares": (0.5, 0.5)}, "sum to less than 1"),
        ({"memory": "elephant"}, "memory"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    """Each setting is checked, and the error names it."""
    with pytest.raises(SettingsError, match=message):
        policy(**changes)


def test_a_walk_asks_each_model_once() -> None:
    """After its last model a walk is decided, and takes no more answers."""
    router = CascadeRouter(0.1, PRICES, seed=1)
    walk = router.walk()
    with pytest.raises(InputError, match="walk has ended"):
        router.decide(walk)
    with pytest.raises(InputError, match="2 features"):
        CascadeRouter(0.1, Cascade(prices=PRICES, features=2), seed=1).walk().answered(0.3, 1.0)
    for bad in (float("nan"), "many"):
        with pytest.raises(InputError, match="features"):
            CascadeRouter(0.1, Cascade(prices=PRICES, features=1), seed=1).walk().answered(0.3, bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="uncertainty"):
        walk.answered(1.5)
    walk.answered(0.3)
    with pytest.raises(InputError, match="decide it"):
        walk.failed()
    with pytest.raises(InputError, match="walk has ended"):
        router.decide(0.3)
    assert router.step == 0


def test_tickets_and_walks_belong_together() -> None:
    """A walk is decided with the ticket that it began with."""
    router = CascadeRouter(0.1, PRICES, seed=1)
    plain = router.walk()
    plain.answered(0.3)
    ticket, other = router.arrive(), router.arrive()
    walk = router.walk(ticket)
    walk.answered(0.3)
    with pytest.raises(InputError, match="pass the ticket"):
        router.decide(walk)
    with pytest.raises(InputError, match="pass the ticket"):
        router.decide(walk, ticket=other)
    with pytest.raises(InputError, match="take tickets"):
        router.decide(plain)
    with pytest.raises(InputError, match="take tickets"):
        router.walk()
    assert router.decide(walk, ticket=ticket).ticket == 1


@pytest.mark.parametrize(
    ("answers", "losses", "message"),
    [
        (FULL[:1], [0.0, 0.0], "needs 2 answers"),
        ([(0.4, 1.0), FULL[1]], [0.0, 0.0], "was \\(0.3, 1.0\\) at the decision"),
        ([FULL[0], ()], [0.0, None], "needs all models"),
        ([FULL[0], None], [0.0, 1.0], "exactly if it has an answer"),
        (FULL, [0.0, None], "exactly if it has an answer"),
        (FULL, [0.0, 2.0], "loss"),
        ([FULL[0], (0.1, float("inf"))], [0.0, 1.0], "finite"),
    ],
)
def test_outcomes_that_do_not_fit_the_decision_are_refused(answers: Any, losses: Any, message: str) -> None:
    """All models of an audit are reported, as they answered, each with a loss in [0, 1]."""
    router, entries = journalled()
    decision = first_decision(router)
    with pytest.raises(InputError, match=message):
        router.observe_stages(decision, answers, losses)
    assert len(entries) == 2
    router.observe_stages(decision, FULL, [0.0, 1.0])


def test_a_cascade_does_not_take_the_loss_of_one_model() -> None:
    """The methods of a pair's router say which to use instead."""
    router, _ = journalled()
    decision = first_decision(router)
    with pytest.raises(InputError, match="observe_stages"):
        router.observe(decision, 0.0)
    with pytest.raises(InputError, match="propose_stages"):
        router.propose_outcome(decision, 0.0)
    with pytest.raises(InputError, match="Decision that decide returned"):
        router.observe_stages("decision", FULL, [0.0, 0.0])  # type: ignore[arg-type]
    with pytest.raises(ObservationError):
        router.observe_stages(decision._replace(step=7), FULL, [0.0, 0.0])
    entry = router.propose_stages(decision, FULL, [0.0, 1.0])
    router.apply(entry)
    assert entry.stages == StageOutcomes(tuple(FULL), (0.0, 1.0))


def test_journals_that_no_cascade_can_have_written_are_refused() -> None:
    """A decision, an outcome or a rule that contradicts the settings is refused by its number."""
    router, entries = journalled()
    serve(router, 150, random.Random(4), failing=0.0)
    places = {
        "decided": next(n for n, e in enumerate(entries) if isinstance(e, Decision) and e.call_expert),
        "resolved": next(n for n, e in enumerate(entries) if isinstance(e, Resolved) and e.stages),
        "fitted": next(n for n, e in enumerate(entries) if isinstance(e, Fitted)),
    }
    decided, resolved, fitted = (entries[places[name]] for name in ("decided", "resolved", "fitted"))
    assert isinstance(decided, Decision)
    assert isinstance(decided.cascade, CascadeRound)
    assert isinstance(resolved, Resolved)
    assert resolved.stages is not None
    assert isinstance(fitted, Fitted)
    part = decided.cascade
    wrong: list[tuple[str, Any]] = [
        ("decided", decided._replace(cascade=None)),
        ("decided", decided._replace(cascade=part._replace(answers=((),)))),
        ("decided", decided._replace(cascade=part._replace(stage=1))),
        ("decided", decided._replace(cascade=part._replace(stage=9))),
        ("decided", decided._replace(cascade=part._replace(rule=5))),
        ("decided", decided._replace(cascade=part._replace(full_propensity=0.0))),
        ("decided", decided._replace(uncertainties=())),
        ("resolved", resolved._replace(stages=None)),
        ("resolved", resolved._replace(stages=StageOutcomes((None,), (None,)))),
        ("fitted", Fitted({"stages": [2, 1]})),
        ("fitted", Fitted({"stages": ["x"]})),
        ("fitted", Fitted({"stages": [1, 7]})),
        ("fitted", Fitted({"models": []})),
        ("fitted", Fitted(fitted.rule | {"prices": ["nan"]})),
        ("fitted", Fitted({"stages": [1], "models": [], "prices": [0.0], "averages": []})),
    ]
    for name, entry in wrong:
        changed = [*entries]
        changed[places[name]] = entry
        with pytest.raises(JournalError, match=f"entry {places[name] + 1}"):
            CascadeRouter.rebuild(changed)
    repeated = [*entries[: places["fitted"] + 1], fitted]
    with pytest.raises(JournalError, match="none is due"):
        CascadeRouter.rebuild(repeated)


def test_a_pair_takes_no_entries_of_a_cascade() -> None:
    """A router of two models refuses a cascade's decisions, outcomes and rules."""
    entries: list[Any] = []
    router = Router(0.1, seed=1, journal=entries.append)
    decision = router.decide(0.4)
    stages = StageOutcomes(((0.4,),), (0.0,))
    with pytest.raises(JournalError, match="has a pair"):
        Router.rebuild([*entries, Resolved(1, 0.0, stages=stages)])
    with pytest.raises(JournalError, match="contradicts"):
        Router.rebuild([entries[0], decision._replace(cascade=CascadeRound(0, 1, ((),), False, 1.0))])
    with pytest.raises(JournalError, match="none is due"):
        Router.rebuild([*entries, Fitted({"stages": [1]})])


def test_a_cascade_takes_no_history() -> None:
    """Rows of two models, and journals of them, are refused."""
    router, entries = journalled()
    with pytest.raises(InputError, match="history is for routers of two models"):
        router.warm_start([(0.3, 0.0)])
    with pytest.raises(JournalError, match="entry 2 is history"):
        CascadeRouter.rebuild([*entries, Labelled((0.3,), 0.0)])
