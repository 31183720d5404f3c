"""The router of a cascade: arrive → ask one model after the other → decide → observe.

1. A query takes a ticket (``arrive``) and sets out (``walk``). The walk says which model to ask next, on the terms that
   were in force at the query's arrival, and is told each answer's uncertainty or that the model failed.
2. When an answer is accepted, or no model is left, the query is decided (``decide``). ``decision.cascade.stage`` is the
   stage whose answer was accepted; the last stage is the reference.
3. If ``decision.call_expert``, the reference is asked. If ``decision.cascade.full``, so are all other models. Then the
   losses are reported (``observe``), given up (``forfeit``), or the reference refused (``refuse``).
4. Everything else is as in ``bpac.Router``, whose journal, tickets, snapshots and alarm this router uses.
"""

from collections.abc import Sequence
from typing import Literal, cast

from bpac.errors import InputError
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.cascade.outcome import checked_outcome
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import StageAnswer
from bpac.routing.cascade.walk import Walk
from bpac.routing.coins import Coins
from bpac.routing.decision import Decision
from bpac.routing.exploration.schedules import Exploration
from bpac.routing.journal.entries import Resolved
from bpac.routing.router.parts import Write
from bpac.routing.router.router import Router
from bpac.routing.tickets.ticket import Ticket


class CascadeRouter(Router):
    """Decides for each query which model of a cascade answers, and keeps the promise.

    Parameters
    ----------
    epsilon: bound on the average loss compared with always asking the last model (ε).
    prices: price of a call of each model, the last one the reference; or the policy.
    alpha: the chance that this fails at any time (α, default: 0.1).
    exploration, explore, alpha_epochs, max_owed, seed, coins, journal: as for ``Router``.

    >>> router = CascadeRouter(epsilon=0.05, prices=(1, 8, 24), seed=1)
    >>> walk = router.walk(router.arrive())
    >>> walk.next_stage
    1
    >>> walk.answered(0.3)                               # nothing is certified yet
    False
    >>> decision = router.decide(walk, ticket=walk.terms)
    >>> decision.call_expert, decision.cascade.full      # all models are asked
    (True, True)
    >>> router.observe_stages(decision, answers=[(0.3,), (0.1,)], losses=[1.0, 0.0])
    """

    def __init__(
        self,
        epsilon: float,
        prices: Sequence[float] | Cascade,
        alpha: float = 0.1,
        *,
        exploration: Exploration | None = None,
        explore: Literal["serve", "shadow"] = "serve",
        alpha_epochs: Literal["all", "each"] = "all",
        max_owed: int = 4096,
        seed: int | None = None,
        coins: Coins | None = None,
        journal: Write | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            alpha,
            prices if isinstance(prices, Cascade) else Cascade(prices=tuple(prices)),
            exploration=exploration,
            explore=explore,
            alpha_epochs=alpha_epochs,
            max_owed=max_owed,
            seed=seed,
            coins=coins,
            journal=journal,
        )

    @property
    def policy(self) -> Cascade:
        """The policy of this router."""
        return cast(Cascade, self.settings.policy)

    @property
    def bettor(self) -> CascadeBettor:
        """The rules of the current epoch and their wealths. Read it, and leave it as it is."""
        with self._lock:
            self._route.charge()
            return cast(CascadeBettor, self._route.bettor)

    @property
    def answered(self) -> dict[int, int]:
        """How many queries each stage answered, from 1."""
        return {stage: self._route.answered[stage] for stage in range(1, self._route.stages + 1)}

    @property
    def asked(self) -> dict[int, int]:
        """For how many queries each stage was asked, audits included."""
        return {stage: self._route.asked[stage] for stage in range(1, self._route.stages + 1)}

    @property
    def cost(self) -> float:
        """Price of all calls per query so far, in units of the prices; 0 before the first query."""
        total = sum(self._route.asked[stage] * price for stage, price in enumerate(self.policy.prices, start=1))
        return total / self._route.step if self._route.step else 0.0

    def walk(self, ticket: Ticket | None = None) -> Walk:
        """Send a query on its way.

        Parameters
        ----------
        ticket: what ``arrive`` returned for it. Without one, it arrives now, and queries count in the order in which
            they are decided; the promise then assumes that this order does not depend on the losses.
        """
        with self._lock.change():
            route, tickets = self._route, self._tickets
            if ticket is None:
                if route.running:
                    raise InputError("queries take tickets here: call arrive() first, and pass on what it returns")
                self._proposals.latest = None
                tickets.fit_if_due()
                route.charge()
                current = route.current
                terms = Ticket(
                    *(0, current.number, current.bettor.threshold, current.rate, current.active_score, route.entries)
                )
            else:
                tickets.check(ticket)
                terms = tickets.terms(ticket)
            policy = self.policy
            # After an alarm no threshold of the old epoch is used, so that any rule will do.
            bettor = cast(CascadeBettor, route.bettor)
            rule = bettor.rules[terms.score if terms.epoch == route.epoch else 0]
            return Walk(rule, terms, policy.stages, policy.features, issued=ticket is not None)

    def observe(self, decision: Decision, loss: float) -> None:
        """A cascade needs the losses of all models that were asked: see ``observe_stages``."""
        raise InputError("a cascade needs the losses of all models that were asked: call observe_stages()")

    def propose_outcome(self, decision: Decision, loss: float) -> Resolved:
        """A cascade needs the losses of all models that were asked: see ``propose_stages``."""
        raise InputError("a cascade needs the losses of all models that were asked: call propose_stages()")

    def observe_stages(
        self, decision: Decision, answers: Sequence[StageAnswer], losses: Sequence[float | None]
    ) -> None:
        """Report what an audit found: any time later, in any order, once.

        Parameters
        ----------
        decision: what ``decide`` returned.
        answers: for each model but the last its uncertainty and features; ``()`` if it was not asked, none if it
            failed. The answers made before the decision must be the same.
        losses: loss of each of them against the last model's answer; none where there is no answer.
        """
        self._record(lambda: self._stages_entry(decision, answers, losses))

    def propose_stages(
        self, decision: Decision, answers: Sequence[StageAnswer], losses: Sequence[float | None]
    ) -> Resolved:
        """The entry that ``observe_stages`` would write; it takes effect when it is passed to ``apply``."""
        with self._lock:
            return self._stages_entry(decision, answers, losses)

    def _stages_entry(
        self, decision: Decision, answers: Sequence[StageAnswer], losses: Sequence[float | None]
    ) -> Resolved:
        part = decision.cascade if isinstance(decision, Decision) else None
        if part is None:
            raise InputError(f"observe_stages takes the Decision that decide returned, got {decision!r}")
        outcome = checked_outcome(decision, answers, losses, self.policy)
        accepted = decision.uncertainty < decision.threshold
        loss = outcome.losses[part.stage - 1] if accepted else 0.0
        entry = self._proposals.outcome(decision, cast(float, loss))._replace(stages=outcome)
        self._proposals.latest = entry
        return entry
