"""What callers got, compared with the journals: every served round must be there, once, and all must follow from it."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from bpac.gateway.games.rounds.decision_ids import id_with_key
from bpac.routing.decision import Decision
from bpac.routing.journal.chain import next_head
from bpac.routing.journal.entries import Committed, Entry, Opened, Resolved, Started
from bpac.routing.journal.rebuild import follow, opened
from bpac.routing.recorded_terms import DecisionRules
from bpac.routing.route import Route
from bpac.stores.redis.folding.fold import Fold, PlainState
from bpac.stores.redis.store import RedisStore
from bpac.stores.sqlite.writing.statements import entry_text
from bpac.stores.store import Game, Store
from tests.faults.callers import Got


class GameBook:
    """One journal, read on from where it was read before, and folded.

    Parameters
    ----------
    game: the game.

    Attributes
    ----------
    counts: ``loss 1`` of audits and tickets, steps ``twice``, and audits without an outcome (``open``).
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.counts: Counter[str] = Counter()
        self.route: Route | None = None
        self.decided: dict[int, tuple[Decision, int]] = {}
        self._owed: set[int] = set()
        self._resolved: set[int] = set()
        self._given_up: set[int] = set()
        self._entries, self._head = 0, game.head
        self._first = 0
        self._keys: dict[int, bytes] = {}

    def read(self, store: Store) -> None:
        """Follow the entries that were added since."""
        for stored in store.entries(self.game, self._entries):
            self._entries += 1
            self._head = next_head(self._head, entry_text(stored.entry))
            self._take(stored.entry)
        self.counts["open"] = len(self._owed)

    def _take(self, entry: Entry) -> None:
        if isinstance(entry, Opened):
            self.route = opened(entry)
            return
        assert self.route is not None
        follow(self.route, [entry])
        if isinstance(entry, Decision):
            self.counts["twice"] += entry.step in self.decided
            self.decided[entry.step] = entry, self._first
            self.counts["decided"] += 1
            if entry.call_expert:
                self._owed.add(entry.step)
        elif isinstance(entry, Resolved):
            # A loss that is known after all takes the place of the 1 that was charged for want of it.
            known = entry.loss is not None or entry.refused
            self.counts["twice"] += entry.step in (self._resolved if known else self._resolved | self._given_up)
            self.counts["loss 1"] += -(entry.step in self._given_up) if known else 1
            (self._resolved if known else self._given_up).add(entry.step)
            self._owed.discard(entry.step)
        elif isinstance(entry, Started):
            self.counts["loss 1"] += 1
        elif isinstance(entry, Committed):
            self._first = entry.first_step

    def differences(self, store: Store) -> list[str]:
        """What the store says of the game and does not follow from its entries."""
        found = []
        head = store.head(self.game) if isinstance(store, RedisStore) else [*store.links(self.game)][-1].head
        if head != self._head:
            found.append("the head of the hash chain")
        if [*self.decided] != list(range(1, len(self.decided) + 1)):
            found.append("the order of steps")
        if isinstance(store, RedisStore) and self.route is not None:
            names = ("in_force", "entries", "generation", "step")
            values = store.client.command("HMGET", store.of(self.game).state, *names)
            in_force, entries, generation, step = (value.decode() for value in values)
            fold = Fold(
                PlainState(self.route), DecisionRules.of(self.route.settings), self._head, int(generation), None
            )
            now = fold.in_force().key
            if (in_force, int(entries), int(step)) != (now, self._entries, len(self.decided)):
                found.append(f"what is in force: {in_force} after {entries}, not {now} after {self._entries}")
        return found

    def has(self, got: Got, store: Store) -> bool:
        """Whether an answer follows from the journal."""
        step = int(got.decision.split("-")[2])
        if step not in self.decided:
            return False
        decision, first = self.decided[step]
        if first not in self._keys:
            key = store.key(self.game, step)
            assert key is not None
            self._keys[first] = key.key
        named = id_with_key(store.secret, self.game, step, self._keys[first])
        served = (float(got.headers["x-bpac-threshold"]), got.kept)
        return (got.decision, *served) == (named, decision.threshold, decision.serve_draft)


class Books:
    """All journals of a store.

    Parameters
    ----------
    store: the store.

    Attributes
    ----------
    missing: answers that do not follow from the journals.
    lost: answers of games whose journals were lost, and that are known to be.
    wrong: what else is wrong, in words.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.games: dict[int, GameBook] = {}
        self.missing: list[Got] = []
        self.wrong: list[str] = []
        self._seen: set[str] = set()
        self._served_twice = 0
        self.lost = 0

    def read(self) -> None:
        """Follow what was added to the journals."""
        for game in self.store.games():
            self.games.setdefault(game.number, GameBook(game)).read(self.store)

    def check(self, answers: Iterable[Got], lost_until: float = 0.0) -> None:
        """Compare some answers and the published state with the journals.

        Parameters
        ----------
        answers: what callers got.
        lost_until: until when answers may belong to games that ended because their journals were lost.
        """
        self.read()
        over = {loss.game for loss in self.store.losses()}
        for got in answers:
            if not got.decision:
                if got.kept:
                    self.wrong.append("a draft was served without a decision")
                continue
            self._served_twice += got.decision in self._seen
            self._seen.add(got.decision)
            number = int(got.decision.split("-")[1])
            book = self.games.get(number)
            if book is not None and book.has(got, self.store):
                continue
            if number in over and got.at <= lost_until:
                self.lost += 1
            else:
                self.missing.append(got)
        for book in self.games.values():
            if book.game.number not in over:
                self.wrong += [f"game {book.game.number}: {what}" for what in book.differences(self.store)]
                if book.counts["open"]:
                    self.wrong.append(f"game {book.game.number}: {book.counts['open']} audits have no outcome")

    def count(self, what: str) -> int:
        """A sum over all games."""
        return sum(book.counts[what] for book in self.games.values())

    def newest(self, what: str) -> int:
        """The same of the latest game only."""
        return self.games[max(self.games)].counts[what] if self.games else 0

    @property
    def twice(self) -> int:
        """Steps, outcomes and answers that are there twice."""
        return self.count("twice") + self._served_twice

    def compare(self, reported: dict[str, Any]) -> None:
        """Compare what a gateway shows with the latest journal."""
        self.read()
        book = max(self.games.values(), key=lambda one: one.game.number)
        assert book.route is not None
        shown = (reported["steps"], reported["threshold"])
        if shown != (len(book.decided), book.route.bettor.threshold):
            self.wrong.append(f"a gateway shows {shown}, not {(len(book.decided), book.route.bettor.threshold)}")
