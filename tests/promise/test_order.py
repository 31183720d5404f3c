"""The promise with many drafts under way: queries count in the order in which they arrive, or the promise breaks."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from bpac.replay.router_factory import RouterFactory
from bpac.replay.simulation.delays import Delay
from bpac.replay.simulation.drafting import Drafting
from bpac.replay.simulation.laws import LAWS
from bpac.replay.validation import Promise, StreamResult, Validation
from bpac.routing.policies import named_policy
from tests.promise.test_promise import explained

pytestmark = pytest.mark.promise

ALPHA = 0.1
POLICIES: list[tuple[str, str | None, Promise]] = [
    ("portfolio", "alarmed", "threshold"),
    ("portfolio", "latched", "threshold"),
    ("portfolio", "revocable", "threshold"),
    ("paper", None, "threshold"),
    ("paper-prior", None, "threshold"),
    ("hoeffding", None, "threshold"),
    ("budget", None, "served"),
]


@dataclass(frozen=True, slots=True)
class Streams:
    """A number of streams, each of which is played when it is asked for."""

    validation: Validation
    count: int

    def __iter__(self) -> Iterator[StreamResult]:
        return (self.validation.stream(seed) for seed in range(1, 1 + self.count))


def streams(
    policy: str,
    memory: str | None,
    law: str,
    drafting: Drafting,
    *,
    steps: int = 1000,
    delay: str = "none",
    count: int = 50,
) -> Streams:
    """Streams through fresh routers, with drafts that take as long as ``drafting`` says."""
    make_router = RouterFactory(named_policy(policy, memory), 0.1, ALPHA)
    return Streams(Validation(make_router, LAWS[law], steps, Delay.parse(delay), drafting), count)


def slow_losses(in_flight: int, *, tickets: bool = True) -> Drafting:
    """Drafts that lose take three times as long."""
    return Drafting.parse("losses:3", in_flight, tickets=tickets)


def holds(streams: Streams, promise: Promise = "threshold") -> bool:
    """Whether a true rate of α explains the violations."""
    return explained((promise in result.broken for result in streams), streams.count, ALPHA)


def calls(streams: Streams) -> float:
    """The share of queries that went to the expert."""
    return sum(result.expert_call_rate for result in streams) / streams.count


@pytest.mark.parametrize(("policy", "memory", "promise"), POLICIES)
@pytest.mark.parametrize("law", ["rising", "edge"])
def test_promise_holds_in_the_order_of_arrival(policy: str, memory: str | None, promise: Promise, law: str) -> None:
    """With tickets the promise fails in at most a share α of streams: 64 drafts under way, the slow ones lose."""
    assert holds(streams(policy, memory, law, slow_losses(64)), promise)


# Every pair of a policy and a law is played with 64 drafts under way.
@pytest.mark.parametrize(
    ("policy", "memory", "law"),
    [("portfolio", "alarmed", "rising"), ("portfolio", "latched", "edge"), ("paper", None, "edge")],
)
def test_promise_holds_with_256_drafts_under_way(policy: str, memory: str | None, law: str) -> None:
    """With tickets it holds with 256 drafts under way, in streams long enough for thresholds to open."""
    assert holds(streams(policy, memory, law, slow_losses(256), steps=2000, count=40))


@pytest.mark.parametrize(
    ("policy", "memory"),
    [("portfolio", "alarmed"), ("portfolio", "latched"), ("portfolio", "revocable"), ("paper", None)],
)
@pytest.mark.parametrize("law", ["rising", "edge"])
@pytest.mark.parametrize("in_flight", [64, 256])
def test_the_order_of_completion_breaks_the_promise(policy: str, memory: str | None, law: str, in_flight: int) -> None:
    """Control: without tickets every policy that bets fails the same test."""
    assert not holds(streams(policy, memory, law, slow_losses(in_flight, tickets=False), count=40))


def test_independent_draft_times_keep_the_promise() -> None:
    """Without tickets it is the link between time and loss that breaks the promise: independent times do not."""
    assert holds(streams("portfolio", "latched", "edge", Drafting.parse("independent:5", 64, tickets=False)))


def test_late_feedback_composes_with_slow_drafts() -> None:
    """The promise holds where drafts that lose take longer and their outcomes arrive later, too."""
    assert holds(streams("portfolio", "latched", "edge", slow_losses(64), delay="losses:20"))


def test_tickets_still_open_thresholds() -> None:
    """With 64 drafts under way a fifth of 1,500 queries still does not need the expert."""
    assert calls(streams("portfolio", "latched", "rising", slow_losses(64), steps=1500, count=20)) < 0.8


def test_a_hung_draft_does_not_close_the_route() -> None:
    """A draft that never ends costs less than five points of expert calls: the rounds behind it pass it over."""
    usual = slow_losses(16)
    hung = Drafting(16, usual.fixed, usual.mean, usual.loss_factor, hung=100)
    without, with_one = (
        calls(streams("portfolio", "latched", "rising", drafting, steps=1500, count=20)) for drafting in (usual, hung)
    )
    assert with_one < without + 0.05
