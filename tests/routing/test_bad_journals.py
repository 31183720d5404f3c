import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from bpac import Decision, Router
from bpac.errors import JournalError, TornLine
from bpac.routing.exploration.schedules import Constant
from bpac.routing.journal.entries import Entry, Labelled, Opened, Resolved
from bpac.routing.journal.entry_lines import entry_from_json, entry_to_json, read_journal, remark_from_json
from bpac.routing.policies import Fixed, Portfolio
from bpac.routing.settings import Settings


def journal(**settings: Any) -> list[Entry]:
    """Opened, two rows of history, an audit and its outcome, an audit that is owed, a kept draft, a forfeit."""
    entries: list[Entry] = []
    policy = settings.pop("policy", Fixed(0.5, explores=0.2))
    router = Router(0.1, policy=policy, seed=3, journal=entries.append, **settings)
    router.warm_start([(0.1, 0.0), (0.9, 1.0)])
    router.observe(router.decide(0.8), 0.5)
    router.decide(0.9)
    while router.decide(0.1).call_expert:
        pass
    router.forfeit(router.decide(1.0), "timeout")
    return entries


ENTRIES = journal()
OPENED, LABELLED, RESOLVED = ENTRIES[0], cast(Labelled, ENTRIES[1]), cast(Resolved, ENTRIES[4])
AUDIT, OWED = cast(Decision, ENTRIES[3]), cast(Decision, ENTRIES[5])
KEPT = next(entry for entry in ENTRIES if isinstance(entry, Decision) and not entry.call_expert)


def test_the_unchanged_journal_is_accepted() -> None:
    """The journal that the other tests damage can be read."""
    assert Router.rebuild(ENTRIES).step == sum(isinstance(entry, Decision) for entry in ENTRIES)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([], "entry 1 must be the opened entry with the settings, got None"),
        (ENTRIES[1:], "entry 1 must be the opened entry"),
        ([RESOLVED], "entry 1 must be the opened entry"),
        ([OPENED, *ENTRIES], "entry 2 is Opened.*only the first entry opens a journal"),
        ([OPENED, OWED], "entry 2 decides step 2 after step 0: a decision is missing"),
        ([OPENED, AUDIT, RESOLVED, AUDIT], "entry 4 decides step 1 after step 1: a decision is repeated"),
        ([OPENED, AUDIT, OWED, AUDIT], "entry 4 decides step 1 after step 2: a decision is repeated"),
        ([OPENED, AUDIT, Resolved(7, 0.0)], "entry 3 resolves step 7, which was never decided"),
        ([OPENED, AUDIT, Resolved(0, 0.0)], "entry 3 resolves step 0, which was never decided"),
        ([OPENED, LABELLED, Resolved(0, 0.0)], "entry 3 resolves step 0, which was never decided"),
        ([OPENED, AUDIT, RESOLVED, RESOLVED], "entry 4 resolves step 1, which has no open outcome.* repeated"),
        ([*ENTRIES, Resolved(KEPT.step, 0.0)], f"resolves step {KEPT.step}, which has no open outcome"),
        ([*ENTRIES, ENTRIES[-1]], "gives step .* up a second time: an entry is repeated"),
        ([OPENED, AUDIT, LABELLED], "entry 3 is history after step 1: history comes before the first decision"),
        ([OPENED, Labelled((), 0.0)], "entry 2 has 0 scores"),
        ([OPENED, Labelled((0.1, 0.2), 0.0)], "entry 2 has 2 scores"),
        ([OPENED, Labelled((1.5,), 0.0)], "entry 2: uncertainty must be"),
        ([OPENED, Labelled((0.5,), 1.5)], "entry 2: loss must be"),
        ([OPENED, LABELLED._replace(loss=None)], "entry 2 contradicts itself"),
        ([OPENED, AUDIT, RESOLVED._replace(loss=1.5)], "entry 3: loss must be"),
        ([OPENED, AUDIT, RESOLVED._replace(loss=float("nan"))], "entry 3: loss must be"),
    ],
)
def test_entries_that_no_router_wrote_are_refused(entries: list[Entry], says: str) -> None:
    """Gaps, repeats and foreign entries are refused with the number of the entry and what is wrong with it."""
    with pytest.raises(JournalError, match=says):
        Router.rebuild(entries)


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        (AUDIT._replace(uncertainty=-0.1), "entry 2: uncertainty must be"),
        (AUDIT._replace(threshold=float("nan")), "entry 2: threshold must be"),
        (AUDIT._replace(propensity=1.5), "entry 2: propensity must be"),
        (AUDIT._replace(least_propensity=cast(float, True)), "entry 2: least_propensity must be"),
        (AUDIT._replace(uncertainties=(0.8,)), "entry 2 contradicts"),
        (AUDIT._replace(uncertainties=(2.0,)), "entry 2: uncertainty must be"),
        (AUDIT._replace(propensity=0.2), "entry 2 contradicts"),
        (AUDIT._replace(call_expert=False, serve_draft=True), "entry 2 contradicts"),
        (AUDIT._replace(serve_draft=True), "entry 2 contradicts"),
        (AUDIT._replace(epoch=0), "entry 2 contradicts"),
        (AUDIT._replace(epoch=2), "entry 2 contradicts"),
        (AUDIT._replace(least_propensity=0.19), "entry 2 contradicts"),
        (KEPT._replace(step=1, least_propensity=0.1, propensity=0.1), "entry 2 contradicts"),
        (KEPT._replace(step=1, least_propensity=0.5, propensity=0.4), "entry 2 contradicts"),
        (KEPT._replace(step=1, serve_draft=False), "entry 2 contradicts"),
        (KEPT._replace(step=1, propensity=1.0), "entry 2 contradicts"),
    ],
)
def test_decisions_that_contradict_themselves_are_refused(decision: Decision, says: str) -> None:
    """Impossible values, a propensity below the floor, and events of probability 0 are refused."""
    with pytest.raises(JournalError, match=says):
        Router.rebuild([OPENED, decision])


def test_an_audit_of_probability_0_is_refused() -> None:
    """Where nothing is explored, a draft below the threshold cannot have been audited."""
    entries: list[Entry] = []
    router = Router(0.1, policy=Fixed(0.5), journal=entries.append)
    kept = router.decide(0.1)
    with pytest.raises(JournalError, match="entry 2 contradicts"):
        Router.rebuild([entries[0], kept._replace(call_expert=True, serve_draft=False)])


def test_a_shadow_audit_serves_the_draft() -> None:
    """With shadow audits an accepted draft is served whether audited or not, and one above the threshold never."""
    entries: list[Entry] = []
    Router(0.1, policy=Fixed(0.5, explores=0.2), explore="shadow", seed=3, journal=entries.append).decide(0.1)
    decision = cast(Decision, entries[1])
    assert Router.rebuild(entries).step == 1
    with pytest.raises(JournalError, match="entry 2 contradicts"):
        Router.rebuild([entries[0], decision._replace(serve_draft=not decision.serve_draft)])


def test_a_decision_with_a_missing_score_is_refused() -> None:
    """A decision of a router with two scores has two, each in [0, 1]."""
    entries: list[Entry] = []
    Router(0.1, policy=Portfolio(scores={"a": 0.5, "b": 0.5}), journal=entries.append).decide({"a": 0.1, "b": 0.2})
    decision = cast(Decision, entries[1])
    for scores, says in (((0.1,), "contradicts"), ((), "contradicts"), ((0.1, 1.2), "uncertainty must be")):
        with pytest.raises(JournalError, match=says):
            Router.rebuild([entries[0], decision._replace(uncertainties=scores)])


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(epsilon=2.0),
        lambda s: s.update(epsilon=True),
        lambda s: s.update(budget=3),
        lambda s: s.pop("policy"),
        lambda s: s.update(policy="portfolio"),
        lambda s: s.update(policy={"kind": "Roulette"}),
        lambda s: s.update(policy={"kind": ["Portfolio"]}),
        lambda s: s.update(policy={"kind": "Portfolio", "colour": "red"}),
        lambda s: s.update(policy={"kind": "Paper", "rule": {"kind": "PriorThreshold", "weights": [1.0]}}),
        lambda s: s.update(policy={"kind": "Portfolio", "fractions": 3}),
        lambda s: s.update(policy={"kind": "Fixed", "threshold": 2.0}),
        lambda s: s.update(policy={"kind": "Portfolio", "levels": {"kind": "ListedLevels", "thresholds": [2.0]}}),
        lambda s: s.update(policy={"kind": "Portfolio", "scores": [0.5, 0.5]}),
        lambda s: s.update(policy={"kind": "Portfolio", "levels": {"kind": "Budget"}}),
        lambda s: s.update(policy={"kind": "Paper", "bet": 0.05}),
        lambda s: s.update(policy={"kind": "TwoStage"}),
        lambda s: s.update(exploration={"kind": "Budget"}),
    ],
    ids=range(17),
)
def test_settings_that_no_router_had_are_refused(change: Callable[[dict[str, Any]], object]) -> None:
    """An opened entry with bad settings is refused as a journal error, whatever is wrong with them."""
    settings = Router(0.1).settings.to_json()
    change(settings)
    with pytest.raises(JournalError, match="entry 1 has settings that cannot be used: "):
        Router.rebuild([Opened(json.loads(json.dumps(settings)))])


def test_settings_that_are_not_an_object_are_refused() -> None:
    """Settings that are not a JSON object are refused, and the message names the entry."""
    with pytest.raises(JournalError, match=r"settings must be an object, got \[\]"):
        Router.rebuild([Opened(cast(Any, []))])
    assert Settings.from_json(Router(0.1).settings.to_json()) == Router(0.1).settings


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "line 9 is not JSON"),
        ("{", "line 9 is not JSON .*: restore it from a copy"),
        ("resolved 3", "line 9 is not JSON"),
        ("3", "line 9 is not a journal entry: it must be an object with entry = opened, labelled, decided, resolved"),
        ("[]", "line 9 is not a journal entry"),
        ("null", "line 9 is not a journal entry"),
        ("{}", "line 9 is not a journal entry"),
        ('{"entry":"reopened"}', "line 9 is not a journal entry"),
        ('{"entry":null}', "line 9 is not a journal entry"),
        ('{"entry":["decided"]}', "line 9 is not a journal entry"),
        ('{"entry":"resolved","loss":0}', "line 9 lacks 'step'"),
        ('{"entry":"resolved","step":1}', "line 9 lacks 'loss'"),
        ('{"entry":"resolved","step":1,"loss":0,"mood":"good"}', "line 9 has the unknown key 'mood': .* version"),
        ('{"entry":"resolved","step":1.0,"loss":0}', "line 9: step cannot be 1.0"),
        ('{"entry":"resolved","step":true,"loss":0}', "line 9: step cannot be True"),
        ('{"entry":"resolved","step":1,"loss":"0"}', "line 9: loss cannot be '0'"),
        ('{"entry":"resolved","step":1,"loss":false}', "line 9: loss cannot be False"),
        ('{"entry":"resolved","step":1,"loss":null,"cause":3}', "line 9: cause cannot be 3"),
        ('{"entry":"resolved","step":1,"loss":null,"draft_served":1}', "line 9: draft_served cannot be 1"),
        ('{"entry":"labelled","uncertainties":0.5,"loss":0}', "line 9: uncertainties cannot be 0.5"),
        ('{"entry":"opened","settings":[]}', r"line 9: settings cannot be \[\]"),
        (entry_to_json(AUDIT).replace("true", "1"), "line 9: call_expert cannot be 1"),
        (entry_to_json(AUDIT).replace("0.8", '"0.8"'), "line 9: uncertainty cannot be '0.8'"),
    ],
)
def test_a_line_that_is_not_an_entry_is_refused(line: str, says: str) -> None:
    """Broken JSON, unknown kinds and keys, missing keys and wrong types are refused with the number of the line."""
    with pytest.raises(JournalError, match=says):
        entry_from_json(line, 9)


def test_a_last_line_that_was_cut_off_may_be_dropped() -> None:
    """A torn last line is refused with the remedy, and dropped where that is asked for; nothing else is lost."""
    lines = [entry_to_json(entry) + "\n" for entry in ENTRIES]
    whole, torn = lines[:-1], lines[-1][:-8]
    with pytest.raises(TornLine, match=rf'line {len(lines)} is cut off: .*read with torn="drop"'):
        list(read_journal([*whole, torn]))
    assert list(read_journal([*whole, torn], torn="drop")) == ENTRIES[:-1]
    assert list(read_journal(lines)) == ENTRIES


def test_lines_for_auditors_are_skipped() -> None:
    """They may be anywhere, and lines keep their numbers; a line that only looks like one is refused."""
    lines = [entry_to_json(entry) + "\n" for entry in ENTRIES]
    claim = '{"entry":"claim","entries":3,"threshold":0.5}\n'
    assert remark_from_json(claim) == ("claim", {"entries": 3, "threshold": 0.5})
    assert list(read_journal([claim, *lines[:3], claim, claim, *lines[3:], claim])) == ENTRIES
    with pytest.raises(TornLine, match="line 2 is cut off"):
        list(read_journal([lines[0], claim[:-9]]))
    for false in ('{"entry":["claim"]}\n', '["claim"]\n', '{"entry":"claim"\n', '{"entry":"claims"}\n'):
        assert remark_from_json(false) is None
        with pytest.raises(JournalError, match="line 3 is"):
            list(read_journal([lines[0], claim, false]))


def test_a_line_cut_off_in_the_middle_is_never_dropped() -> None:
    """Only the last line can have been cut off by a crash: a cut line in the middle is an error."""
    lines = [entry_to_json(entry) for entry in ENTRIES]
    with pytest.raises(JournalError, match="line 1"):
        list(read_journal(lines, torn="drop"))


def test_a_decision_of_an_earlier_epoch_is_refused() -> None:
    """A round counts in the epoch in which it was decided: an entry of an older one would be a win in the new."""
    entries: list[Entry] = []
    router = Router(0.1, exploration=Constant(0.05), seed=1, journal=entries.append)
    while not router.threshold:
        router.observe(router.decide(0.5), 0.0)
    while router.epoch == 1:
        decision = router.decide(0.1)
        if decision.call_expert:
            router.observe(decision, 1.0)
    late = router.decide(0.1)
    assert late.epoch == 2
    with pytest.raises(JournalError, match="contradicts"):
        Router.rebuild([*entries[:-1], late._replace(epoch=1)])
