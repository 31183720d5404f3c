"""What is wrong with a Redis server, in words, and what to do about it; nothing here asks one."""

from typing import NamedTuple


class ServerFault(NamedTuple):
    """Why a server cannot be used.

    Parameters
    ----------
    why: what is wrong.
    remedy: what to do.
    """

    why: str
    remedy: str


BY_ITSELF = "the gateway goes on by itself"
REMEDY = f"check that the server runs and can be reached; {BY_ITSELF}"
# The same for a gateway or a command that is just being started.
START_REMEDY = "check that the server runs, that it can be reached from here, and that the address is right"
# By the first word of an error that the server replied with.
BY_CODE = {
    "OOM": ServerFault("its memory is full", f"raise maxmemory, or archive old entries; {BY_ITSELF}"),
    "MISCONF": ServerFault("it cannot write to its disk", f"see the log of Redis; {BY_ITSELF}"),
    "READONLY": ServerFault("it is a copy", "give the address of the main server, or use redis+sentinel://"),
    "NOPERM": ServerFault("its user may not do this", "let the user run all commands on the keys of the gateways"),
    "CLUSTERDOWN": ServerFault(
        "a node of the cluster is down", f"start the node, or let a copy take over (CLUSTER FAILOVER); {BY_ITSELF}"
    ),
}
NO_CLUSTER = ServerFault("it is no cluster", "use redis:// for one server, or redis+sentinel://")
# By a part of what redis-py says of a cluster.
OF_CLUSTERS = {
    "Cluster mode is not enabled": NO_CLUSTER,
    "slots are not covered": ServerFault(
        "not all slots of the cluster are covered", f"see CLUSTER INFO of its nodes; {BY_ITSELF}"
    ),
    "cannot be connected": ServerFault("no node of the cluster answers", REMEDY),
}


def too_few_copies(copies: int, wait: int) -> ServerFault:
    """What was written is not on as many copies as ``wait`` asks for.

    >>> too_few_copies(0, 1).why
    '0 of 1 copies have what was written'
    """
    remedy = f"start or repair the copies of the server, or lower wait in its address; {BY_ITSELF}"
    return ServerFault(f"{copies} of {wait} copies have what was written", remedy)


def of_cluster(message: str) -> ServerFault:
    """What is wrong with a cluster, by what redis-py says."""
    found = (fault for part, fault in OF_CLUSTERS.items() if part in message)
    return next(found, ServerFault("its cluster does not work", f"see CLUSTER INFO of its nodes; {BY_ITSELF}"))
