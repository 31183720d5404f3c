"""The state of a route: it follows from the entries of its journal, and from nothing else.

1. ``decided`` applies a decision, ``settle`` the outcome of an audit (see ``outcomes.py``); ``started``, ``stopped``,
   ``withdrawn`` and ``overdue`` apply what becomes of tickets, ``learned`` a row of history, ``joined`` a score that
   was learned, ``expects`` what is expected of the rounds to come.
2. Nothing is checked here: ``Router`` checks the arguments of callers, and ``rebuild`` the entries of a journal.
"""

from collections import Counter
from typing import Any, cast

from bpac.betting.bounds.certificate import Certificate
from bpac.routing.bettors import Bettor, ByArrival, Candidates
from bpac.routing.cascade.bettor import CascadeBettor
from bpac.routing.cascade.policy import Cascade
from bpac.routing.cascade.rounds import CascadeRound
from bpac.routing.cascade.rules import JoiningRule
from bpac.routing.decision import Decision
from bpac.routing.epoch import Epoch
from bpac.routing.journal.entries import Expected, Labelled, Learned
from bpac.routing.learning.learning import Learning
from bpac.routing.outcomes import Outcomes
from bpac.routing.policies import Portfolio
from bpac.routing.settings import Settings

CROWDED_OUT = "crowded out"
# What a snapshot keeps as it is.
PLAIN = (
    *("step", "labelled", "expert_calls", "drafts_served", "outcomes", "ticket_entries", "withdrawals", "refusals"),
    *("commitments", "forfeit_share", "running"),
)


class Route(Outcomes):
    """The state of one game.

    Parameters
    ----------
    settings: the settings of the router.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.shadow = settings.explore == "shadow"
        self.score_names = settings.policy.score_names
        self.feature_names = learned.features if (learned := settings.policy.learned) is not None else ()
        self.certain_while_closed = settings.policy.certain_while_closed
        self.in_order = settings.policy.in_order
        self.dither = settings.policy.dither if isinstance(settings.policy, Portfolio) else 0.0
        self.labelled = 0
        self.expert_calls = 0
        self.drafts_served = 0
        self.ticket_entries = 0
        self.withdrawals = 0
        self.commitments = 0
        self.running = False  # whether queries take tickets now
        policy = settings.policy
        # Models of a cascade, how many queries each answered, and for how many it was asked; 0 and none for a pair.
        self.stages = policy.stages if isinstance(policy, Cascade) else 0
        self.answered: Counter[int] = Counter()
        self.asked: Counter[int] = Counter()
        self.fitted_rules = 0
        self.expectations = 0

    @property
    def epoch(self) -> int:
        """The number of the current epoch, from 1."""
        return self.current.number

    @property
    def bettor(self) -> Bettor:
        """Who bets in the current epoch."""
        return self.current.bettor

    @property
    def by_arrival(self) -> ByArrival | None:
        """The order of arrival, once queries took tickets; none if the policy need not know it."""
        return self.current.by_arrival

    @property
    def entries(self) -> int:
        """How many entries of a journal this state comes from."""
        learned = self.learning.entries if self.learning is not None else self.fitted_rules
        others = self.labelled + self.ticket_entries + self.commitments + self.expectations
        return 1 + self.step + self.outcomes + others + learned

    def decided(self, decision: Decision) -> None:  # noqa: PLR0912  # it is done for every query, and calls cost
        """Apply a decision. ``charge`` must have been called before it was made."""
        # Taken apart once: looking up each field by name costs more than all the rest.
        (
            step,
            uncertainty,
            threshold,
            propensity,
            least_propensity,
            call_expert,
            serve_draft,
            number,
            _,
            _,
            _,
            _,
            part,
        ) = decision
        self.step = step
        if serve_draft:
            self.drafts_served += 1
            self.served.kept += 1
        if part is not None:
            self._count(part, call_expert, serve_draft)
        epoch = self.current
        current = number == epoch.number
        changes = step <= epoch.steady_after
        if current:
            epoch.receiver.decided(decision)
            learner = epoch.learner
            if learner is not None:  # what its ``decided`` does, without the call
                recent = learner.recent
                recent.append(uncertainty)
                learner.audits += least_propensity
                if len(recent) >= learner.pause:
                    learner.look(threshold)
                    changes = True
            elif (joint_rates := epoch.joint_rates) is not None:
                recent_rounds = joint_rates.recent
                recent_rounds.append(decision)
                if len(recent_rounds) >= joint_rates.pause and joint_rates.look_if_due():
                    changes = True
                    self._leave_out_retired()
        if call_expert:
            self.expert_calls += 1
            self.uncharged = decision
            if propensity < 1.0:
                self.served.audited(propensity)
            if len(self.owed) >= self._max_owed:
                # Give up on the oldest, so that a route's memory is bounded.
                self.give_up(self.owed[next(iter(self.owed))], CROWDED_OUT)
        elif current and epoch.drift is not None:
            drift, alarm = epoch.drift, epoch.drift.alarm
            if drift.raised:
                drift.fade(least_propensity)
                changes = True
            elif alarm.least_propensity == least_propensity:
                alarm.quiet += 1  # what ``fade`` does in nearly every round, without the calls
            else:
                drift.fade(least_propensity)
        if changes:
            epoch.set_rate(step)

    def _count(self, part: CascadeRound, call_expert: bool, serve_draft: bool) -> None:
        """Count which models of a cascade are asked, and which answers."""
        self.answered[part.stage if serve_draft else self.stages] += 1
        for stage, answer in enumerate(part.answers, start=1):
            if part.full or answer != ():
                self.asked[stage] += 1
        if call_expert:
            self.asked[self.stages] += 1

    def started(self) -> None:
        """Queries take tickets from here on; those under way before, if any, were cut off."""
        self.ticket_entries += 1
        self.charge()
        by_arrival = self.by_arrival
        if by_arrival is None:
            self.current.follow_arrivals()
        elif self.running:
            by_arrival.cut_off()
        self.running = True

    def stopped(self) -> None:
        """No query is under way."""
        self.ticket_entries += 1
        self.running = False
        if self.by_arrival is not None:
            self.by_arrival.start()

    def withdrawn(self, number: int) -> None:
        """A ticket is withdrawn."""
        self.ticket_entries += 1
        self.withdrawals += 1
        self.charge()
        if self.by_arrival is not None:
            self.by_arrival.withdrawn(number)

    def overdue(self, number: int) -> None:
        """A ticket no longer holds up those behind it."""
        self.ticket_entries += 1
        self.charge()
        if self.by_arrival is not None:
            self.by_arrival.overdue(number)

    def learned(self, row: Labelled) -> None:
        """Apply a row of history as a round; its step is below 1."""
        self.labelled += 1
        self.current.learned(row, 1 - self.labelled)

    def joined(self, entry: Learned) -> None:
        """Let a learned score bet on the queries that arrive from here on, or give its share back to the first."""
        self.charge()
        cast(Learning, self.learning).join(entry, self.step)  # only a router that learns writes such an entry
        self.current.join(entry.tickets, None if entry.model is None else entry.gain)
        self.current.set_rate(self.step)
        self._leave_out_retired()

    def committed(self) -> None:
        """Take note of a commitment to the coins to come: it changes nothing but the number of entries."""
        self.commitments += 1

    def expects(self, entry: Expected) -> None:
        """Use the exploration rate that follows from what is expected of the rounds to come."""
        self.expectations += 1
        self.charge()
        self.expected = entry
        self.current.expect(entry, self.step)
        self._leave_out_retired()

    def _leave_out_retired(self) -> None:
        """Compute no scores any more that do not bet; a look at the exploration rate lets scores retire."""
        if self.learning is not None and isinstance(self.bettor, Candidates):
            self.learning.retire(self.bettor.absent)

    def fitted(self, rule: JoiningRule) -> None:
        """Let a rule of a cascade join."""
        self.fitted_rules += 1
        self.charge()
        cast(CascadeBettor, self.current.bettor).join(rule, self.entries)

    def certificate(self) -> Certificate:
        """Bounds on the loss served so far."""
        self.charge()
        return self.served.certificate(self.step, self.drafts_served)

    def state(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        self.charge()
        return {
            **{name: getattr(self, name) for name in PLAIN},
            "forfeits": dict(self.forfeits),
            "owed": [decision.to_list() for decision in self.owed.values()],
            "given_up": [decision.to_list() for decision in self.given_up.values()],
            **self.current.state(),
            "served": self.served.state(),
            **({"learning": self.learning.state()} if self.learning is not None else {}),
            **self._cascade_state(),
            **({"expected": [self.expectations, *self.expected]} if self.expectations else {}),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take over a state that ``state`` returned."""
        for name in PLAIN:
            setattr(self, name, state[name])
        self.forfeits = Counter(state["forfeits"])
        self.owed = {decision.step: decision for decision in map(Decision.from_list, state["owed"])}
        self.given_up = {decision.step: decision for decision in map(Decision.from_list, state["given_up"])}
        if "expected" in state:
            self.expectations, *expected = state["expected"]
            self.expected = Expected(*expected)
        self.current = Epoch(
            self.settings, self.terms, self.served, state["epoch"], state["epoch_start"], expected=self.expected
        )
        self.served.load(state["served"])
        self.served.kept = self.drafts_served
        if self.learning is not None:
            self.learning.load(state["learning"])
        self.current.load(state, self.step)
        self._leave_out_retired()
        for name in ("answered", "asked"):
            setattr(self, name, Counter({int(stage): count for stage, count in state.get(name, {}).items()}))
        self.fitted_rules = state.get("fitted_rules", 0)

    def _cascade_state(self) -> dict[str, Any]:
        if not self.stages:
            return {}
        counts = {"answered": self.answered, "asked": self.asked}
        plain = {name: {str(stage): n for stage, n in sorted(count.items())} for name, count in counts.items()}
        return {**plain, "fitted_rules": self.fitted_rules}
