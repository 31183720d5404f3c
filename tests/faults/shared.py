"""Gateways that share a game through Redis, and what can happen to them."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bpac.stores import open_store
from bpac.stores.store import Store
from bpac.testing import ScriptedServer
from tests.faults.books import Books
from tests.faults.callers import Callers
from tests.faults.gateway import Gateway, settled
from tests.faults.lives import Lives
from tests.faults.proxy import PARTITIONS, DroppingProxy
from tests.faults.scene import Scene
from tests.gateway.configured import wait_for
from tests.gateway.law import KnownPair
from tests.redis_servers import RedisSentinel, RedisServer

LEASE, TIMEOUT = 1.0, 0.5
# Seconds after which answers were decided after a fault.
UNDER_WAY = 0.1
OPTIONS = {"lease": LEASE, "timeout": TIMEOUT}


class SharedScene(Scene):
    """Gateways on one Redis server; the first one reaches it through a proxy that can fail.

    Parameters
    ----------
    directory: for files.
    lives: starts gateways.
    gateways: how many.
    redis: options of the server.
    """

    def __init__(
        self,
        directory: Path,
        lives: Lives,
        gateways: int = 3,
        redis: Sequence[str] = (),
    ) -> None:
        super().__init__(directory)
        self._lives = lives
        self._count = gateways
        self._options = redis
        self._of_redis: Mapping[str, str] = {}
        self._emptied = 0.0

    def open(self) -> None:
        """Start everything."""
        models = self.stack.enter_context(ScriptedServer(KnownPair(delay=0.002, delay_of_loss=0.05)))
        addresses = self._servers()
        self.gateways = [
            Gateway(self._lives, self.directory / f"gateway {at}", models.base_url, address)
            for at, address in enumerate(addresses)
        ]
        for gateway in self.gateways:
            gateway.start()
            self.stack.callback(gateway.end)
        for gateway in self.gateways:
            gateway.wait_until_ready()
        self._address = addresses[-1]
        self.books = Books(self.opened_store())
        self.callers = self.stack.enter_context(Callers(self.urls))
        self.wait_for_decisions(self.urls, 0.0)
        self.books.read()

    def _servers(self) -> list[str]:
        """Start the servers; the address of the store for each gateway."""
        home = self.directory / "redis"
        home.mkdir()
        self.redis = self.stack.enter_context(RedisServer(home, *self._options, environment=self._of_redis))
        self.proxy = self.stack.enter_context(DroppingProxy(self.redis.port))
        address = self.redis.address("faults", **OPTIONS)
        through = address.replace(f":{self.redis.port}/", f":{self.proxy.port}/")
        return [through, *[address] * (self._count - 1)]

    @property
    def urls(self) -> list[str]:
        """Where the gateways are."""
        return [gateway.url for gateway in self.gateways]

    def opened_store(self) -> Store:
        """The store, for reading."""
        return open_store(self._address, read_only=True)

    def settled(self) -> None:
        """Wait until all that happened is in the journal, and every audit has an outcome."""
        settled(self.gateways)

    def repair(self) -> None:
        """Start gateways that a fault has left behind."""
        for gateway in self.gateways:
            if not gateway.is_alive():
                gateway.start()
                gateway.wait_until_ready()

    def shown(self) -> None:
        """Compare what gateways show with the books."""
        for gateway in self.gateways:
            self.books.compare(gateway.game())

    def faults(self) -> Sequence[tuple[str, Callable[[], float]]]:
        """What can happen to gateways."""
        return [
            ("SIGKILL of a gateway", self.kill_replica),
            ("SIGKILL of the folder", self.kill_folder),
            ("SIGSTOP of the folder", self.stop_folder),
            ("partition of a gateway and Redis", self.part),
            ("SIGKILL of Redis, append-only file", self.kill_redis),
            ("Redis is a copy for a while (READONLY)", self.demote_redis),
        ]

    def _folder(self) -> Gateway:
        wait_for(lambda: any(gateway.shared()["folding"] for gateway in self.gateways))
        return next(gateway for gateway in self.gateways if gateway.shared()["folding"])

    def kill_replica(self) -> float:
        """A gateway that does not fold."""
        folder = self._folder()
        return self._killed(self.random.choice([one for one in self.gateways if one is not folder]))

    def kill_folder(self) -> float:
        """The gateway that folds."""
        return self._killed(self._folder())

    def _killed(self, victim: Gateway) -> float:
        others = [one for one in self.gateways if one is not victim]
        began = time.monotonic()
        victim.end()
        wait_for(lambda: all(one.shared()["replicas"] == len(others) for one in others))
        taken_off = time.monotonic()
        back = self.wait_for_decisions([one.url for one in others], taken_off)
        victim.start()
        victim.wait_until_ready()
        self.wait_for_decisions([victim.url], back)
        return back - began

    def stop_folder(self) -> float:
        """The folder stands still for longer than its lease."""
        victim = self._folder()
        others = [one for one in self.gateways if one is not victim]
        began = time.monotonic()
        os.kill(victim.pid, signal.SIGSTOP)
        try:
            wait_for(lambda: any(one.shared()["folding"] for one in others))
            back = self.wait_for_decisions([one.url for one in others], time.monotonic())
            time.sleep(max(0.0, began + self.random.uniform(1.2, 2.5) * LEASE - time.monotonic()))
        finally:
            os.kill(victim.pid, signal.SIGCONT)
        self.wait_for_decisions(self.urls, time.monotonic())
        return back - began

    def part(self) -> float:
        """One gateway cannot reach Redis, for less or for more than its lease."""
        self.proxy.set(PARTITIONS[self.random.randrange(len(PARTITIONS))])
        time.sleep(self.random.uniform(0.2, 2.0) * LEASE)
        self.proxy.set("pass")
        began = time.monotonic()
        return self.wait_for_decisions(self.urls, began + UNDER_WAY) - began

    def kill_redis(self) -> float:
        """Redis ends and is started again."""
        self.redis.kill()
        self._emptied = time.monotonic()
        time.sleep(self.random.uniform(0.0, 1.5))
        self.redis.start()
        began = time.monotonic()
        return self.wait_for_decisions(self.urls, began + UNDER_WAY) - began

    def demote_redis(self) -> float:
        """Redis refuses to write, as the copy of another server does."""
        assert self.redis.command("REPLICAOF 127.0.0.1 1").startswith(b"+OK")
        time.sleep(self.random.uniform(0.1, 1.0))
        assert self.redis.command("REPLICAOF NO ONE").startswith(b"+OK")
        began = time.monotonic()
        return self.wait_for_decisions(self.urls, began + UNDER_WAY) - began

    def lost_until(self) -> float:
        """Until when callers may get answers that were decided before Redis was lost."""
        return self._emptied + 1.0


class EmptiedScene(SharedScene):
    """Redis without an append-only file."""

    empties = True

    def faults(self) -> Sequence[tuple[str, Callable[[], float]]]:
        """It comes back empty, or with less than it had."""
        return [
            ("SIGKILL of Redis, no file", self.lose_redis),
            ("FLUSHALL", self.empty_redis),
            ("Redis restored from an old copy", self.restore_redis),
        ]

    def empty_redis(self) -> float:
        """An operator's mistake."""
        self.over = self.gateways[0].game()["game"]
        self._emptied = time.monotonic()
        assert self.redis.command("FLUSHALL").startswith(b"+OK")
        began = time.monotonic()
        return self.wait_for_decisions(self.urls, began) - began

    def restore_redis(self) -> float:
        """It is started with what it had a while ago."""
        assert self.redis.command("SAVE").startswith(b"+OK")
        self.over = self.gateways[0].game()["game"]
        time.sleep(self.random.uniform(0.2, 0.6))
        seconds = self.kill_redis()
        (self.directory / "redis" / "dump.rdb").unlink()
        return seconds

    def lose_redis(self) -> float:
        """It ends, and is empty when it starts."""
        self.over = self.gateways[0].game()["game"]
        return self.kill_redis()


class SentinelScene(SharedScene):
    """A main server and its copy, and a sentinel that decides when the copy takes over."""

    AT_ONCE = ("--repl-diskless-sync-delay", "0", "--appendonly", "yes", "--appendfsync", "no")

    def _servers(self) -> list[str]:
        homes = [self.directory / name for name in ("main", "copy", "sentinel")]
        for home in homes:
            home.mkdir()
        self._main = self.stack.enter_context(RedisServer(homes[0], *self.AT_ONCE))
        follows = (*self.AT_ONCE, "--replicaof", "127.0.0.1", str(self._main.port))
        self._copy = self.stack.enter_context(RedisServer(homes[1], *follows))
        wait_for(self._main.has_copy)  # or gateways that start at once would not find what wait=1 demands
        self._sentinel = self.stack.enter_context(RedisSentinel(homes[2], self._main))
        wait_for(lambda: b"slaves=1" in self._sentinel.command("INFO sentinel"))
        options = "&".join(f"{name}={value}" for name, value in OPTIONS.items())
        address = f"redis+sentinel://127.0.0.1:{self._sentinel.port}/main?name=faults&wait=1&{options}"
        return [address] * self._count

    def faults(self) -> Sequence[tuple[str, Callable[[], float]]]:
        """The copy takes over."""
        return [("failover with Sentinel, wait=1", self.fail_over)]

    def fail_over(self) -> float:
        """The main server is killed, and comes back as a copy of the other one."""
        leads = self._sentinel.main_port() == self._main.port
        main, copy = (self._main, self._copy) if leads else (self._copy, self._main)
        began = time.monotonic()
        self._sentinel.fail_over(main, copy, self.AT_ONCE)
        back = self.wait_for_decisions(self.urls, time.monotonic())
        wait_for(copy.has_copy)
        wait_for(lambda: b"status=ok" in self._sentinel.command("INFO sentinel"))
        return back - began
