"""Several gateways on one game, or several processes of one gateway: what the page shows, and what is wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bpac.dashboard.remedies import SEVERAL
from bpac.dashboard.troubles import Trouble

# Games in the table of the page, those that are furthest behind first.
MOST_LISTED = 20
# From this many decided rounds outside the journal on, the folder is too slow.
MUCH_LAG = 1000
# Leases without a new entry, while rounds wait, after which nobody folds: by then another gateway should have taken
# over.
LEASES_STILL = 3
# Ends of a process within the latest minutes (``lately`` in the status) from which on it keeps ending.
OFTEN = 3

CUT_OFF = "what it has under way is cut off each time, as in a crash, and audits under way count as a loss of 1"
FILLS_UP = "Redis keeps all entries, and its memory fills up; when it is full, the expert answers every request"
UNKNOWN_LOSS = "each of them may be a loss of 1 that the certificate does not contain"
STALE = "thresholds stay as they were, so drafts that have become safe are not kept, and a drift is noticed late"


def replicas_document(games: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The shared games of a gateway; none if no other gateway takes part in any of them.

    Parameters
    ----------
    games: of each shared game ``route``, ``segment``, ``game`` and what ``shared`` in ``/v1/status`` says.
    """
    known = list(games)
    replicas = max((game["replicas"] for game in known), default=0)
    if replicas < 2:
        return None
    speeds = [game["entries_per_second"] for game in known if game["entries_per_second"] is not None]
    furthest = sorted(known, key=lambda game: (-game["lag"], -(game["entries_per_second"] or 0.0), game["game"]))
    return {
        "replicas": replicas,
        "games": len(known),
        "folding": sum(game["folding"] for game in known),
        "lag": sum(game["lag"] for game in known),
        "entries_per_second": sum(speeds) if speeds else None,
        "listed": [_listed(game) for game in furthest[:MOST_LISTED]],
    }


def _listed(game: Mapping[str, Any]) -> dict[str, Any]:
    names = ("route", "segment", "game", "folder", "folding", "replicas", "lag", "entries_per_second")
    return {name: game[name] for name in names} | {"folded": not _not_folded(game)}


def replica_troubles(games: Iterable[Mapping[str, Any]]) -> list[Trouble]:
    """Shared games that nobody folds, or whose journal is far behind; the games of a route are counted together.

    Parameters
    ----------
    games: as for ``replicas_document``. Games that Redis does not answer for are a trouble of the store.
    """
    found: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    known = list(games)
    for game in known:
        if game["error"] is None and (_not_folded(game) or game["lag"] >= MUCH_LAG):
            found.setdefault((game["route"], _not_folded(game)), []).append(game)
    troubles = []
    for (route, nobody), members in found.items():
        rounds = f"{sum(game['lag'] for game in members):,} decided rounds are not in the journal yet"
        where = "" if len(members) == 1 else f" in {len(members):,} segments"
        cause = "no gateway folds the game" if nobody else "the gateway that folds the game is too slow"
        since = min((game["behind_since"] for game in members if game["behind_since"]), default=None)
        remedy = SEVERAL["no folder" if nobody else "lag"]
        troubles.append(Trouble(f"route {route}{where}: {cause}: {rounds}", since, len(members), remedy, STALE))
    return troubles + _outside_troubles(known)


def _outside_troubles(games: Iterable[Mapping[str, Any]]) -> list[Trouble]:
    """Drafts that were served while Redis was gone, and gateways that have not reported theirs."""
    drafts, unreported = Counter[str](), Counter[str]()
    for game in games:
        drafts[game["route"]] += game["outside"]["drafts"]
        unreported[game["route"]] += game["outside"]["unreported"]
    troubles = []
    for route, count in (+unreported).items():
        what = f"route {route}: {count:,} gateways died that may have served drafts while Redis was gone"
        troubles.append(Trouble(what, None, count, SEVERAL["unreported"], UNKNOWN_LOSS))
    for route, count in (+drafts).items():
        what = f"route {route}: {count:,} drafts were served on the last threshold while Redis was gone"
        troubles.append(Trouble(what, None, count, SEVERAL["outside"], UNKNOWN_LOSS))
    return troubles


def archive_troubles(games: Iterable[Mapping[str, Any]]) -> list[Trouble]:
    """Shared games whose old entries this gateway cannot archive.

    Parameters
    ----------
    games: as for ``replicas_document``.
    """
    failing = [game for game in games if game["archive"] and game["archive"]["error"]]
    return [
        Trouble(
            f"route {game['route']} {game['segment']}".rstrip()
            + f": old entries cannot be archived to {game['archive']['folder']}: {game['archive']['error']}",
            game["archive"]["since"],
            1,
            SEVERAL["archive"],
            FILLS_UP,
        )
        for game in failing[:MOST_LISTED]
    ]


def outside_text(outside: Mapping[str, int]) -> Iterator[str]:
    """The same in lines of text, for the status of one game.

    >>> list(outside_text({"drafts": 2, "unreported": 0}))
    ['  drafts served while Redis was gone, which the certificate does not contain: 2']
    """
    if outside["drafts"]:
        yield f"  drafts served while Redis was gone, which the certificate does not contain: {outside['drafts']:,}"
    if outside["unreported"]:
        yield f"  gateways that may have served such drafts and died without a report: {outside['unreported']:,}"


def _not_folded(game: Mapping[str, Any]) -> bool:
    return bool(game["seconds_still"] >= LEASES_STILL * game["lease"])


def process_troubles(workers: Mapping[str, Any]) -> list[Trouble]:
    """Processes of a gateway that are missing, or that end again and again.

    Parameters
    ----------
    workers: as in ``/v1/status``.

    >>> lost = [{"front": 1, "restarts": 7, "lately": 3, "since": 5.0}]
    >>> owner = {"pid": 8, "restarts": 0, "lately": 0, "since": None}
    >>> [one.what for one in process_troubles({"wanted": 2, "fronts": [{}, {}], "lost_fronts": lost, "owner": owner})]
    ['front process 1 keeps ending: 3 times in the latest minutes, 7 times in all']
    """
    troubles = []
    if (missing := workers["wanted"] - len(workers["fronts"])) > 0:
        what = f"{missing} of {workers['wanted']} front processes are not connected: the others answer all requests"
        troubles.append(Trouble(what, None, missing, SEVERAL["missing"]))
    ended = [(f"front process {one['front']}", one) for one in workers["lost_fronts"]]
    for name, one in [("the owner process", workers["owner"]), *ended]:
        if one["lately"] >= OFTEN:
            often = f"{one['lately']:,} times in the latest minutes, {one['restarts']:,} times in all"
            what, remedy = f"{name} keeps ending: {often}", SEVERAL["keeps ending"]
            troubles.append(Trouble(what, one["since"], one["lately"], remedy, CUT_OFF))
    return troubles
