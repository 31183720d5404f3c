"""Restarts, kills, other terms, backups, restores, archives and warm starts, in random orders on one store."""

import json
import random
import shutil
import signal
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from bpac.cli.program import main
from bpac.routing.audit.audit import audit_journal
from bpac.routing.decision import Decision
from bpac.routing.journal.entry_lines import read_journal
from bpac.stores import Game, open_store
from bpac.testing import ScriptedServer
from tests.gateway.configured import settings
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.serving import ManyLives, to_toml

EPSILONS = (0.3, 0.4)


class Operator:
    """Does one thing after the other, and remembers every decision that was served."""

    def __init__(self, directory: Path, base_url: str, seed: int) -> None:
        self.directory = directory
        self.base_url = base_url
        self.dice = random.Random(seed)
        self.lives = ManyLives(directory, base_url)
        self.served: list[tuple[int, int, str]] = []
        self.question = 0
        # Games that may not go on: the number of decisions that each had when that became known.
        self.ended: dict[int, int] = {}
        self.forgotten: set[str] = set()
        self.counts: Counter[str] = Counter()

    def configure(self) -> None:
        """Choose an epsilon, with or without a default written out."""
        more = {"alpha": 0.1, "loss": "answer"} if self.dice.random() < 0.5 else {}
        gateway = {"listen": f"127.0.0.1:{self.lives.port}", "store": self.lives.store, "snapshot_every": 15}
        config = settings(self.base_url, gateway=gateway, epsilon=self.dice.choice(EPSILONS), **more)
        self.lives.config.write_text(to_toml(config))

    def live(self) -> None:
        """A gateway that answers some requests and is stopped or killed, perhaps with a backup meanwhile."""
        self.lives.start()
        copy_at = self.dice.randrange(20)
        for number in range(self.dice.randrange(4, 20)):
            self.question += 1
            got = post(self.lives.url, Question(self.question).body)
            _, game, step, _ = got.headers["x-bpac-decision"].split("-")
            self.served.append((int(game), int(step), got.headers["x-bpac-decision"]))
            if number == copy_at:
                self.command("backup", "--out", str(self.directory / "copy.db"))
        how = self.dice.choice([signal.SIGTERM, signal.SIGKILL])
        self.lives.end(how)
        self.counts[how.name] += 1

    def command(self, name: str, *words: str) -> bool:
        """Whether a command succeeded."""
        done = main([name, str(self.lives.config), *words, "--json"]) == 0
        self.counts[f"{name} {done}"] += 1
        return done

    def restore(self) -> None:
        """Put the latest backup in the place of the store, with or without the file beside it."""
        if not (self.directory / "copy.db").exists():
            return
        without_head = self.dice.random() < 0.5
        for ending in ("-wal", "-shm", *((".head",) if without_head else ())):
            (self.directory / f"bpac.db{ending}").unlink(missing_ok=True)
        shutil.copy(self.directory / "copy.db", self.directory / "bpac.db")
        if without_head:
            # Nothing is left of a game that was begun after the backup, not even its number.
            with closing(open_store(self.lives.store, read_only=True)) as store:
                numbers = {game.number for game in store.games()}
            self.forgotten |= {name for game, _, name in self.served if game not in numbers}
            self.served = [served for served in self.served if served[2] not in self.forgotten]
        self.counts["restore"] += 1

    def warm(self) -> None:
        """Begin a new game from an older one, if that can be done."""
        with closing(open_store(self.lives.store, read_only=True)) as store:
            numbers = [game.number for game in store.games()]
        self.command("warm", "--game", str(self.dice.choice(numbers)), "--new-game")

    def note_losses(self) -> None:
        """Remember what had been served of the games that may not go on from now on."""
        with closing(open_store(self.lives.store, read_only=True)) as store:
            for loss in store.losses():
                self.ended.setdefault(loss.game, sum(game == loss.game for game, _, _ in self.served))

    def day(self) -> None:
        """A random order of everything."""
        self.configure()
        self.live()
        for _ in range(7):
            what = self.dice.choice(["nothing", "terms", "restore", "archive", "warm", "terms", "archive"])
            if what == "terms":
                self.configure()
            elif what == "restore":
                self.restore()
            elif what == "archive":
                self.command("archive", "--out", str(self.directory / "archives"), "--keep", "10")
            elif what == "warm":
                self.warm()
            self.note_losses()
            self.live()


@pytest.mark.parametrize("seed", [0, 1, 2, 33])
def test_no_order_of_events_miscounts_a_round(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """Every decision that was served is in its journal or the loss is known, no id comes twice, and all audits pass."""
    with ScriptedServer(KnownPair()) as models:
        operator = Operator(tmp_path, models.base_url, seed)
        try:
            operator.day()
        finally:
            operator.lives.close()
        capsys.readouterr()
        ids = [*operator.forgotten, *(name for _, _, name in operator.served)]
        assert len(set(ids)) == len(ids)
        for game, before in operator.ended.items():
            assert sum(number == game for number, _, _ in operator.served) == before, "a lost game went on"
        with closing(open_store(operator.lives.store, read_only=True)) as store:
            games, lost = store.games(), {loss.game for loss in store.losses()}
            recorded = {game.number: journal(tmp_path, capsys, operator, game) for game in games}
            assert {game for game, _, _ in operator.served} <= {*recorded, *lost}
        for game, step, _ in operator.served:
            assert game in lost or step in recorded[game], (game, step, operator.counts)


def journal(directory: Path, capsys: pytest.CaptureFixture[str], operator: Operator, game: Game) -> set[int]:
    """The steps of a game, whose archives and rest pass their audit as one journal."""
    assert main(["export", str(operator.lives.config), "--game", str(game.number)]) == 0
    lines = capsys.readouterr().out.splitlines(keepends=True)
    while (first := json.loads(lines[0]))["entry"] == "archived":
        lines = (directory / "archives" / first["file"]).read_text().splitlines(keepends=True) + lines
    audit = audit_journal(lines)
    assert audit.differences == []
    return {entry.step for entry in read_journal(lines) if isinstance(entry, Decision)}
