"""The promise under faults, and rules for them that break it."""

import pytest

from bpac.betting.ledgers.ledger import Round
from bpac.betting.wealth.portfolio import PortfolioWealth
from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.fault_rules import FaultRules, WrongFaultRules
from bpac.replay.simulation.faults import Faults
from bpac.replay.simulation.laws import LAWS
from bpac.replay.validation import MakeRouter, Validation
from bpac.routing.decision import Decision
from bpac.routing.policies import named_policy
from bpac.routing.router import Router
from tests.promise.test_order import ALPHA, Streams, calls, holds
from tests.promise.test_promise import Routers

pytestmark = pytest.mark.promise

RULES = FaultRules()
# Drafts that lose take ten times as long.
SLOW_LOSSES = Drafting.parse("losses:10", 64)
ONE_AT_A_TIME = Drafting()


def start(memory: str = "alarmed") -> RouterFactory:
    """Fresh routers of the default policy."""
    return RouterFactory(named_policy("portfolio", memory), 0.1, ALPHA)


def streams(
    faults: str,
    rules: FaultRules = RULES,
    *,
    routers: MakeRouter | None = None,
    law: str = "edge",
    drafting: Drafting = ONE_AT_A_TIME,
    steps: int = 1500,
    count: int = 60,
) -> Streams:
    """Streams with faults through fresh routers."""
    validation = Validation(
        routers or start(), LAWS[law], steps=steps, drafting=drafting, faults=Faults.parse(faults), rules=rules
    )
    return Streams(validation, count)


# Every fault with both laws and both memories, and each law with each memory; not all of the three together.
@pytest.mark.parametrize(
    ("faults", "law", "memory"),
    [
        ("outage-draft", "rising", "alarmed"),
        ("outage-draft", "edge", "latched"),
        ("outage-expert", "rising", "latched"),
        ("outage-expert", "edge", "alarmed"),
        ("outage-grader", "rising", "alarmed"),
        ("outage-grader", "edge", "latched"),
        ("refusals", "rising", "latched"),
        ("refusals", "edge", "alarmed"),
        ("refusals-timed", "rising", "alarmed"),
        ("refusals-timed", "edge", "latched"),
        ("crash:400", "rising", "latched"),
        ("crash:400", "edge", "alarmed"),
    ],
)
def test_promise_holds(faults: str, law: str, memory: str) -> None:
    """Each fault by itself, one query at a time: the promise fails in at most a share α of streams."""
    assert holds(streams(faults, routers=start(memory), law=law, steps=1000, count=50))


@pytest.mark.parametrize("law", ["rising", "edge"])
def test_promise_holds_under_load_with_all_faults_at_once(law: str) -> None:
    """All faults together, 64 drafts under way and those that lose ten times as long: the promise holds."""
    everything = "outage-draft,outage-expert,outage-grader,refusals-timed,crash:500"
    assert holds(streams(everything, law=law, drafting=SLOW_LOSSES, count=30))


def wrong(rule: str) -> FaultRules:
    """The right rules but for one, which is the old one."""
    rules: FaultRules = type("Wrong", (FaultRules,), {rule: getattr(WrongFaultRules, rule)})()
    return rules


def test_drafts_without_a_score_do_not_count_as_rounds() -> None:
    """Control: counted as rounds of uncertainty 1, an outage of the draft opens unsafe thresholds."""
    assert not holds(streams("outage-draft", wrong("unscored")))


@pytest.mark.parametrize("law", ["rising", "edge"])
def test_an_outage_that_ends_all_drafts_under_way_is_charged(law: str) -> None:
    """Withdrawing the drafts that an outage ends breaks the promise; charging the earliest of them keeps it."""
    assert holds(streams("outage-draft", law=law, drafting=SLOW_LOSSES, count=40))
    assert not holds(streams("outage-draft", wrong("cut_off"), law=law, drafting=SLOW_LOSSES, count=40))


def test_a_crash_that_ends_all_drafts_under_way_is_charged() -> None:
    """With a crash every 500 rounds the promise breaks if what was under way is withdrawn, and holds by the rule."""
    assert holds(streams("crash:500", drafting=SLOW_LOSSES, steps=2000, count=30))
    assert not holds(streams("crash:500", wrong("crashing"), drafting=SLOW_LOSSES, steps=2000, count=30))


class AsWins(FaultRules):
    """Wrong: where the expert refuses, the draft has lost nothing."""

    def refused(self, router: Router, audit: Decision) -> None:
        """Count a loss of 0."""
        router.observe(audit, 0.0)


class NotCounted(PortfolioWealth):
    """Wrong: a refused audit is treated as if it did not exist, while refusals among kept drafts were won."""

    __slots__ = ()

    def replace(self, decision: Round, instead: Round, loss: float, *, charged: bool) -> None:
        """Take out the round's win, and its charge."""
        wins = self._wins(self._bound(decision.least_propensity))
        self._collect()
        self._common = [common - win for common, win in zip(self._common, wins, strict=True)]
        if charged:
            self.remove(decision, 1.0)


@pytest.mark.parametrize("faults", ["refusals", "refusals-timed"])
def test_refusals_open_nothing(faults: str) -> None:
    """Controls: refused audits counted as wins, or not counted, let an attacker open unsafe thresholds."""
    assert not holds(streams(faults, AsWins(), steps=1000, count=30))
    assert not holds(streams(faults, routers=Routers("portfolio", "latched", 0.1, NotCounted), steps=1000, count=30))


def test_refusals_close_nothing() -> None:
    """An attacker who sends refused requests in masses costs others nothing; counted as losses they close the route."""
    usual, fair, as_losses = (
        calls(streams(faults, rules, law="rising", steps=2000, count=10))
        for faults, rules in (("", RULES), ("refusals", RULES), ("refusals", WrongFaultRules()))
    )
    assert fair < usual + 0.05
    assert as_losses > 0.95


def test_an_outage_of_the_expert_is_not_taken_for_drift() -> None:
    """Audits given up in outages cost at most ten points of expert calls; sounding the alarm, they cost more."""
    usual, quiet, sounded = (
        calls(streams(faults, rules, law="rising", steps=4000, count=10))
        for faults, rules in (("", RULES), ("outage-expert", RULES), ("outage-expert", wrong("lost")))
    )
    assert quiet < usual + 0.10
    assert sounded > quiet + 0.05
