from typing import Any

import pytest

from bpac import Router
from bpac.errors import InputError
from bpac.routing.segments import OTHERS, Segments


def segments(**settings: Any) -> tuple[Segments, list[tuple[str, float]]]:
    """Segments, and what was asked of the function that starts their routers."""
    started: list[tuple[str, float]] = []

    def start(name: str, alpha: float) -> Router:
        started.append((name, alpha))
        return Router(0.1, alpha, seed=1)

    return Segments(start, alpha=0.2, **settings), started


def test_each_segment_has_its_own_router() -> None:
    """A segment's rounds count in its router only, with their own numbers from 1."""
    shards, started = segments()
    assert shards.router("maths").decide(0.5).step == 1
    assert shards.router("maths").decide(0.5).step == 2
    assert shards.router("law").decide(0.5).step == 1
    assert started == [("maths", 0.2), ("law", 0.2)]
    assert dict(shards) == {"maths": shards["maths"], "law": shards["law"]}
    assert (len(shards), list(shards)) == (2, ["maths", "law"])


@pytest.mark.parametrize(("scope", "level"), [("each", 0.2), ("all", 0.05)])
def test_alpha_is_for_each_or_for_all(scope: Any, level: float) -> None:
    """With ``all``, the level of every segment is α over the number there may be, so that all hold at once."""
    shards, _ = segments(alpha_scope=scope, most=4)
    levels = [shards.router(name).settings.alpha for name in ("a", "b", "c", "d", "e", "f")]
    assert levels == [level] * 6
    assert sum({id(router): router.settings.alpha for router in shards.values()}.values()) == pytest.approx(4 * level)


def test_segments_beyond_the_limit_share_one() -> None:
    """The last of ``most`` routers is shared by all segments that come later, under a name of its own."""
    shards, _ = segments(most=3)
    first, second = shards.router("a"), shards.router("b")
    shared = shards.router("c")
    assert shards.router("d") is shared is shards[OTHERS]
    assert (shards.router("a"), shards.router("b")) == (first, second)
    assert len(shards) == 3


def test_with_room_for_one_all_segments_share_a_router() -> None:
    """With room for one, all segments share it."""
    shards, _ = segments(most=1)
    assert shards.router("a") is shards.router("b")
    assert list(shards) == [OTHERS]


def test_the_shared_router_may_be_asked_for_first() -> None:
    """Asking for the shared segment by name takes no room from the others."""
    shards, _ = segments(most=3)
    shared = shards.router(OTHERS)
    assert shards.router("a") is not shards.router("b")
    assert shards.router("c") is shared


@pytest.mark.parametrize("name", [None, 3, b"maths", ("maths",)])
def test_a_segment_is_named_by_a_string(name: Any) -> None:
    """Other names are refused, and start nothing."""
    shards, started = segments()
    with pytest.raises(InputError, match="a segment is named by a string, got"):
        shards.router(name)
    assert (started, len(shards)) == ([], 0)


def test_looking_up_an_unknown_segment_starts_nothing() -> None:
    """Looking up a segment that has no router yet is a KeyError, as in any mapping."""
    shards, _ = segments()
    with pytest.raises(KeyError):
        shards["maths"]
    assert "maths" not in shards
