"""Real Redis clusters for tests: three nodes on free ports, each with a third of the slots and no copies."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.redis_servers import RedisServer

SLOTS = 16384
NODES = 3


@contextmanager
def redis_cluster(directory: Path, *options: str) -> Iterator[list[RedisServer]]:
    """The nodes of a cluster that ends with the block.

    Parameters
    ----------
    directory: where their files are, in a directory for each.
    options: of the command line of each node, without their dashes.
    """
    with ExitStack() as stack:
        nodes: list[RedisServer] = []
        buses = [free_port() for _ in range(NODES)]
        share = SLOTS // NODES + 1
        for at, bus in enumerate(buses):
            (directory / str(at)).mkdir()
            plain = ("--cluster-enabled", "yes", "--cluster-port", str(bus))
            node = stack.enter_context(RedisServer(directory / str(at), *plain, *options))
            slots = f"{at * share} {min((at + 1) * share, SLOTS) - 1}"
            assert node.command("CLUSTER ADDSLOTSRANGE", slots).startswith(b"+OK")
            for other, its_bus in zip(nodes, buses, strict=False):
                assert node.command(f"CLUSTER MEET 127.0.0.1 {other.port} {its_bus}").startswith(b"+OK")
            nodes.append(node)
        wait_until_ok(nodes)
        yield nodes


def wait_until_ok(nodes: list[RedisServer]) -> None:
    """Wait until every node takes all slots for covered."""
    for _ in range(6000):
        if all(b"cluster_state:ok" in node.command("CLUSTER INFO") for node in nodes):
            return
        time.sleep(0.01)
    raise AssertionError("the cluster does not agree")


def cluster_address(nodes: list[RedisServer], name: str, **options: object) -> str:
    """The address of a store on a cluster, with all of its nodes."""
    rest = "".join(f"&{key}={value}" for key, value in options.items())
    return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes) + f"?name={name}{rest}"
