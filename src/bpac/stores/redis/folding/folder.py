"""The folder of a game: one replica at a time turns its inbox into its journal, and publishes what is in force.

1. Every replica watches the lease: its beat grows with every publication. If it stands still for longer than the lease
   on this replica's own clock, the lease is taken, and its token grows by one. The new folder reads the latest snapshot
   and what was written after it (``FollowedJournal``). A replica that does not fold reads them when somebody looks.
2. The folder publishes with its token, the last event that it had folded and the number of entries before. If any of
   them is not what Redis has, nothing is published: another folder has taken over, or entries were lost. What was
   computed and not published is thrown away, and the copy is read again.
3. A reply that does not come leaves it open whether a publication took effect. The folder then gives up its lease and
   reads again, like any other replica.
4. The folder watches the counters of the other replicas in the same way, and takes those that stand still off the game
   (``replica_watch.py``).
5. Events of the inbox are numbered. One that is missing, in the middle or at the end, is found when the folder reads or
   publishes, at the latest a quarter of a lease later; then the game ends.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from bpac.routing.journal.entries import Entry, Opened
from bpac.routing.recorded_terms import DecisionRules
from bpac.stores.redis.folding.fold import EventsMissing, Fold, FoldedState
from bpac.stores.redis.folding.publication import publication
from bpac.stores.redis.journal import EntriesLost, FollowedJournal, Position, Restoring
from bpac.stores.redis.keys import GameNames
from bpac.stores.redis.replicas.replica_watch import ReplicaWatch, StandingStill
from bpac.stores.redis.server.connecting import RedisClient, RedisGone, WrongType, fields_of
from bpac.stores.store import Game

log = logging.getLogger("bpac.stores")

# Events that are folded and published at once.
MOST_EVENTS = 500
# Entries between two snapshots at most, whatever is configured: other replicas read what follows the latest one.
SHOWN_EVERY = 2000


class Folder:
    """One replica's part in folding one game.

    Parameters
    ----------
    client: the connections.
    names: the keys of the game.
    game: the game.
    replica: the name of this replica.
    settings: the first entry of the journal, if this replica writes it.
    restoring: makes states.
    lease: seconds without a sign of life after which a folder or a replica counts as dead.
    snapshot_every: entries between two snapshots.
    waits_for_feedback: whether losses are reported from outside.
    clock: a monotonic clock (default: that of this machine).

    Attributes
    ----------
    copy: the state of the game.
    token: the fencing token of the lease; 0 if another replica folds.
    holder: the replica that folds, as far as this one knows.
    lag: events of the inbox that were folded last.
    decided: rounds that were decided, as far as this replica knows.
    folded: rounds of them that are in the journal.
    published: entries of the journal, as far as this replica knows.
    replicas: replicas that take part, as far as this one knows.
    members: their names, if this one folds.
    """

    def __init__(
        self,
        client: RedisClient,
        names: GameNames,
        game: Game,
        *,
        replica: str,
        settings: Opened,
        restoring: Restoring,
        lease: float = 5.0,
        snapshot_every: int = 1000,
        waits_for_feedback: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._names = names
        self.game = game
        self.replica = replica
        self._settings = settings
        self._restoring = restoring
        self._lease = lease
        self.snapshot_every = snapshot_every
        self._waits_for_feedback = waits_for_feedback
        self._clock = clock
        self.copy = FollowedJournal(client, names, game, restoring)
        self.token = 0
        self.holder = ""
        self.lag = self.decided = self.folded = self.published = self.replicas = 0
        self.members: frozenset[str] = frozenset()
        self._fold: Fold | None = None
        self._folded = "0-0"
        self._since_snapshot = 0
        # What was last seen of the lease and of the replicas, and since when it stands still.
        self._lease_beat = StandingStill(lease, clock)
        self._watch = ReplicaWatch(client, names, lease, clock)
        self._published_at = 0.0
        self._looked_at = -lease

    @property
    def state(self) -> FoldedState | None:
        """What follows from the journal; none before anything was read."""
        return self.copy.state

    async def step(self) -> bool:
        """Do what is to be done now; true if there may be more. ``RedisGone`` or ``EntriesLost`` if it fails."""
        try:
            return await (self._fold_some() if self.token else self._follow())
        except WrongType as error:
            raise EntriesLost(str(error), cause=error.cause, remedy=error.remedy) from error
        except RedisGone:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Act as if another replica folds: what was not published is thrown away."""
        if self.token:
            self.token, self._fold = 0, None
            self.copy.forget()
            self._forget_beats()

    def _forget_beats(self) -> None:
        self._lease_beat.forget()
        self._watch.forget()

    async def release(self) -> None:
        """Publish what is left, and let another replica fold at once."""
        if self.token:
            await self._client.run("release", [self._names.state], self.token)
            self.give_up()

    async def stop(self) -> None:
        """Note in the journal that nothing is under way, if no replica is left; give the lease back."""
        while not self.token and await self._follow():  # nobody folds if the folder has left before
            pass
        if self.token:
            names = self._names
            keys = [names.state, names.inbox, names.open, names.replicas]
            while await self._fold_some():
                pass
            if self.token and await self._client.run("start", keys, self.token, "stop") == b"ok":
                while await self._fold_some():
                    pass
                await self._snapshot()
        await self.release()

    async def write(self, entry: Entry, note: dict[str, Any]) -> None:
        """Publish an entry of the folder's own, such as what is expected of the rounds to come."""
        if self._fold is not None:
            self._fold.add(entry, note)
            await self._publish(self._folded)

    async def refresh(self) -> None:
        """Read what was published since, if another replica folds; ``RedisGone`` or ``EntriesLost`` if it fails."""
        if not self.token:
            try:
                await self._look()
                if self.state is None or self.published != self.copy.position.entries:
                    await self.copy.catch_up()
            except WrongType as error:
                raise EntriesLost(str(error), cause=error.cause, remedy=error.remedy) from error
            if self.copy.position.entries < self.published:
                raise EntriesLost(f"the journal of game {self.game.number} lost entries", cause="entries lost")

    async def _look(self) -> tuple[bytes, bytes]:
        """Look how far the game is; token and beat of the folder."""
        names = ("token", "beat", "holder", "over", "step", "folded_step", "entries")
        found = await self._client.command("HMGET", self._names.state, *names)
        token, beat, holder, over, *numbers = found
        if token is None or over is not None:
            raise EntriesLost(f"game {self.game.number} is gone or over", cause="the game is gone or over")
        self.holder = holder.decode()
        self.decided, self.folded, self.published = (int(number or 0) for number in numbers)
        if self._clock() - self._looked_at >= self._lease / 4:
            self._looked_at = self._clock()
            self.replicas = await self._client.command("HLEN", self._names.replicas)
        return token, beat

    async def _follow(self) -> bool:
        """Watch the lease, and take it if it stands still."""
        token, beat = await self._look()
        if self.holder and not self._lease_beat.has_stopped("", (token, beat)):
            return False
        taken = await self._client.run("take", [self._names.state], self.replica, token, beat)
        if taken > 0:
            await self._take_over(taken)
        return True

    async def _take_over(self, token: int) -> None:
        # Whatever the folder before has published is there by now, and it can publish nothing more.
        await self.copy.catch_up()
        fields = ("folded", "folded_generation", "entries", "head", "snapshot", "audits_folded", "instead_folded")
        found = await self._client.command("HMGET", self._names.state, *fields)
        folded, generation, entries, head, snapshot, *counted = found
        position = Position(int(entries), bytes.fromhex(head.decode()))
        if position != self.copy.position:
            raise EntriesLost(f"the journal of game {self.game.number} is not what was published", cause="entries lost")
        self.token, self.holder, self._folded = token, self.replica, folded.decode()
        self._since_snapshot = position.entries - int(snapshot or 0)
        self._forget_beats()
        state = self.copy.state
        is_new = state is None
        if state is None:
            state = self.copy.state = self._restoring.new(self._settings)
        rules = DecisionRules.of(state.route.settings)
        key = await self.copy.key(state.route.step) if state.route.step else None
        self._fold = Fold(
            state, rules, position.head, int(generation), key, waits_for_feedback=self._waits_for_feedback
        )
        audits, instead = (int(count or 0) for count in counted)
        self._fold.counted = audits, instead
        if is_new:
            self._fold.open(self._settings)
        log.info("folding", extra={"game": self.game.number, "token": token, "replica": self.replica})
        await self._publish(self._folded)
        if self.token:
            await self._look_after_replicas()  # from here on it is known whether the server has started again
        if self.token and not state.route.running:
            names = self._names
            await self._client.run("start", [names.state, names.inbox, names.open, names.replicas], token, "start")

    async def _fold_some(self) -> bool:
        fold, names = self._fold, self._names
        assert fold is not None  # whoever has a token folds
        after = f"({self._folded}"
        events = await self._client.command("XRANGE", names.inbox, after, "+", "COUNT", MOST_EVENTS)
        self.lag = len(events)
        last = self._folded
        try:
            for number, fields in events:
                if _place(number.decode()) != _place(last) + 1:
                    raise EventsMissing(f"event {number.decode()} follows event {last}")
                last = number.decode()
                fold.take({name.decode(): value.decode() for name, value in fields_of(fields).items()})
        except EventsMissing as error:
            # A folder that was paused finds the inbox cut: whether that was another folder, its token shows.
            if int(await self._client.command("HGET", names.state, "token") or 0) != self.token:
                self._fenced()
                return False
            raise EntriesLost(f"the inbox of game {self.game.number} lost events", cause="events lost") from error
        now = self._clock()
        due = now - self._published_at >= self._lease / 4
        if (events or due or fold.pending) and not await self._publish(last):
            return False
        if self._since_snapshot >= min(self.snapshot_every, SHOWN_EVERY):
            await self._snapshot()
        await self._learn()
        if self.token and now - self._looked_at >= self._lease / 4:
            self._looked_at = now
            await self._look_after_replicas()
        return len(events) == MOST_EVENTS or bool(fold.pending)

    async def _publish(self, upto: str, *, snapshot: bool = False) -> bool:
        """Publish the entries that are made; false if another folder has taken over."""
        fold, names = self._fold, self._names
        assert fold is not None
        packed, position = publication(fold, self.copy.position, self._folded, upto, snapshot=snapshot)
        keys = [names.state, names.inbox, names.journal, names.snapshot, names.claims]
        status = (await self._client.run("publish", keys, self.token, packed)).decode()
        if status == "lost":
            raise EntriesLost(f"the journal of game {self.game.number} is not what was published", cause="entries lost")
        if status != "ok":
            self._fenced()
            return False
        self._since_snapshot = 0 if snapshot else self._since_snapshot + len(fold.pending)
        fold.pending.clear()
        self.copy.position = self.copy.acknowledged = position
        self.folded, self.published = fold.state.route.step, position.entries
        self._folded, self._published_at = upto, self._clock()
        return True

    def _fenced(self) -> None:
        log.warning("another replica folds this game", extra={"game": self.game.number, "token": self.token})
        self.give_up()

    async def _snapshot(self) -> None:
        if self.token:
            await self._publish(self._folded, snapshot=True)

    async def _learn(self) -> None:
        """Let a learned score join: nothing arrives while it is published, so it is known which tickets have it."""
        fold = self._fold
        if self.token and fold is not None and (rule := fold.next_rule()) is not None:
            fold.add(rule, {})
            await self._publish(self._folded)
        while self.token and fold is not None and (entry := fold.next_score()) is not None:
            given, generation, epoch = await self._client.run("seal", [self._names.state], self.token)
            if given < 0 or (generation, epoch) != (fold.generation, fold.state.route.epoch):
                return  # tickets were cut off meanwhile: it joins when that is folded
            fold.add(entry._replace(tickets=given), {})
            await self._publish(self._folded)

    async def _look_after_replicas(self) -> None:
        self.decided = int(await self._client.command("HGET", self._names.state, "step") or 0)
        await self._watch.look(self.token, self.replica)
        self.replicas, self.members = len(self._watch.members), self._watch.members


def _place(event: str) -> int:
    """The place of an event in the inbox: they are numbered 0-1, 0-2 and so on, without a gap."""
    return int(event.rpartition("-")[2])
