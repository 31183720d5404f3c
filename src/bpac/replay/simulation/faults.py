"""Faults of a simulated gateway: outages, refusals that an attacker provokes, and crashes."""

from dataclasses import dataclass
from typing import Literal

from bpac.arguments import one_of, whole
from bpac.errors import InputError

Server = Literal["draft", "expert", "grader"]
SERVERS: tuple[Server, ...] = ("draft", "expert", "grader")
FAULTS = "outage-draft, outage-expert, outage-grader, refusals, refusals-timed or crash:N"

# Each server is down for 150 of every 900 requests, and no two of them at the same time.
OUTAGE, OUTAGE_EVERY = 150, 900
OUTAGE_STARTS: dict[Server, int] = {"draft": 200, "expert": 500, "grader": 750}
# Share of the requests that come from an attacker; for a timed attack, only while drafts are being accepted.
REFUSED_SHARE, TIMED_SHARE = 0.5, 0.8


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong.

    Parameters
    ----------
    outages: the servers that are down from time to time.
    refusals: when an attacker sends requests with the score 0 that the expert refuses: never, at random times, or only
        while drafts are being accepted.
    crash_every: number of decisions after which the process crashes, again and again; 0 for never.
    """

    outages: tuple[Server, ...] = ()
    refusals: Literal["none", "random", "timed"] = "none"
    crash_every: int = 0

    def __post_init__(self) -> None:
        for server in self.outages:
            one_of(server, "outage", SERVERS)
        one_of(self.refusals, "refusals", ("none", "random", "timed"))
        whole(self.crash_every, "crash every", 0)

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """Read a list of faults, separated by commas.

        >>> Faults.parse("outage-expert,crash:1500")
        Faults(outages=('expert',), refusals='none', crash_every=1500)
        """
        outages: list[Server] = []
        refusals: Literal["none", "random", "timed"] = "none"
        crash_every = 0
        for fault in filter(None, text.split(",")):
            match fault.partition(":"):
                case (("outage-draft" | "outage-expert" | "outage-grader"), "", ""):
                    outages += [server for server in SERVERS if fault == f"outage-{server}"]
                case "refusals", "", "":
                    refusals = "random"
                case "refusals-timed", "", "":
                    refusals = "timed"
                case "crash", ":", count if count.isdecimal() and int(count) > 0:
                    crash_every = int(count)
                case _:
                    raise InputError(f"fault {fault!r} is none of: {FAULTS}")
        return cls(tuple(outages), refusals, crash_every)

    def out(self, server: Server, request: int) -> bool:
        """Whether a server is down for the request of that number."""
        return server in self.outages and (request - OUTAGE_STARTS[server]) % OUTAGE_EVERY < OUTAGE

    def attacks(self, luck: float, accepting: bool) -> bool:
        """Whether the next request comes from the attacker.

        Parameters
        ----------
        luck: a random number in [0, 1).
        accepting: whether drafts are being accepted now, which callers can observe.
        """
        if self.refusals == "random":
            return luck < REFUSED_SHARE
        return self.refusals == "timed" and accepting and luck < TIMED_SHARE
