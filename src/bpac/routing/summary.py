"""Where a router stands, as a value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bpac.betting.bounds.certificate import Certificate
from bpac.routing.route import Route


@dataclass(frozen=True, slots=True)
class Summary:
    """Where a router stands.

    Parameters
    ----------
    policy: name of the policy's class.
    epsilon, alpha: what is promised (ε, α).
    steps: decisions made.
    threshold: drafts with an uncertainty below this are kept (û).
    expert_calls: decisions that called the expert.
    expert_call_rate: their share; none before the first decision.
    owed: audits that wait for their outcome.
    forfeits: audits that were given up, by cause.
    epoch: number of the current epoch, from 1.
    alarm: level of the drift alarm; none if the policy has no alarm.
    doubt: level that the alarm would have if audits without a verdict were losses; none if the policy has no alarm.
    forfeit_share: share of the latest audits of accepted drafts that have no verdict.
    refused: audits that the expert refused to answer.
    withdrawn: tickets that came to no decision.
    certificate: bounds on the loss served so far.
    best_average_upper: what ``certificate.average_upper`` would be if the best rate of its mixture had been known in
        advance: more audits lower it, and a better bound from the same audits cannot (none where it is not known).
    exploration_rate: the probability with which accepted drafts are audited now; none where it is not known.
    audit_price, expert_busy, expected_rounds: what is expected of the queries to come, see ``Router.expect``.

    >>> from bpac import Router
    >>> summary = Router(epsilon=0.05).summary()
    >>> summary.steps, summary.to_json()["certificate"]["average_upper"]
    (0, 0.0)
    """

    policy: str
    epsilon: float
    alpha: float
    steps: int
    threshold: float
    expert_calls: int
    expert_call_rate: float | None
    owed: int
    forfeits: Mapping[str, int]
    epoch: int
    alarm: float | None
    doubt: float | None
    forfeit_share: float
    refused: int
    withdrawn: int
    certificate: Certificate
    best_average_upper: float | None = None
    exploration_rate: float | None = None
    audit_price: float = 1.0
    expert_busy: bool = False
    expected_rounds: int = 0

    @classmethod
    def of(cls, route: Route) -> "Summary":
        """The summary of a route."""
        settings, drift, certificate = route.settings, route.current.drift, route.certificate()
        return cls(
            policy=type(settings.policy).__name__,
            epsilon=settings.epsilon,
            alpha=settings.alpha,
            steps=route.step,
            threshold=route.bettor.threshold,
            expert_calls=route.expert_calls,
            expert_call_rate=route.expert_calls / route.step if route.step else None,
            owed=len(route.owed),
            forfeits=dict(route.forfeits),
            epoch=route.epoch,
            alarm=drift.alarm.level if drift else None,
            doubt=drift.doubts if drift else None,
            forfeit_share=route.forfeit_share,
            refused=route.refusals,
            withdrawn=route.withdrawals,
            certificate=certificate,
            best_average_upper=route.served.best_upper(route.drafts_served) / max(route.step, 1),
            exploration_rate=route.current.rate,
            audit_price=route.expected.audit_price,
            expert_busy=route.expected.busy,
            expected_rounds=route.expected.rounds,
        )

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        values = asdict(self)
        values["certificate"]["average_upper"] = self.certificate.average_upper
        values["certificate"]["best_average_upper"] = values.pop("best_average_upper")
        return values
