"""``bpac games``: games are listed, begun again, moved and begun from others, and the promise stays what it says."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.games.move_places import SqlitePlace
from bpac.cli.program import main
from bpac.routing.audit.audit import audit_journal
from bpac.stores import SqliteStore, open_store
from bpac.testing import ScriptedServer
from tests.gateway.commands.test_warm import asked, configured
from tests.gateway.law import KnownPair
from tests.gateway.running import RunningGateway


def games(directory: Path, capsys: pytest.CaptureFixture[str], word: str, *more: Any) -> Any:
    """What ``bpac games`` reports, or the error it ends with."""
    code = main(["games", word, str(directory / "gateway.toml"), *map(str, more), "--json"])
    printed = capsys.readouterr()
    return json.loads(printed.out) if code == 0 else (code, printed.err)


def states(directory: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str, str]]:
    """Number, state and reason of every game."""
    return [(row["game"], row["state"], row["why"]) for row in games(directory, capsys, "list")["games"]]


def export(directory: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    """The exported journal of a game."""
    assert main(["export", str(directory / "gateway.toml"), *more]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.fixture(scope="module")
def sixty_rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose game has 60 rounds."""
    directory = tmp_path_factory.mktemp("played")
    with ScriptedServer(KnownPair()) as models:
        asked(configured(directory, models.base_url), 0, 60)
    return directory


@pytest.fixture
def played(sixty_rounds: Path, tmp_path: Path) -> Path:
    """A directory with a copy of it."""
    shutil.copytree(sixty_rounds, tmp_path, dirs_exist_ok=True)
    configured(tmp_path)
    return tmp_path


def test_games_are_listed_also_while_a_gateway_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With route, segment, rounds, threshold and state; nothing else may change them meanwhile."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        asked(config, 0, 60)
        with RunningGateway(config) as gateway:
            (row,) = games(tmp_path, capsys, "list")["games"]
            status = gateway.status()
            assert (row["game"], row["route"], row["segment"], row["rounds"]) == (1, "homework", "", 60)
            assert (row["threshold"], row["state"]) == (status["threshold"], status["state"])
            for words in (("reset",), ("move", "--game", 1, "--to", tmp_path / "other.db"), ("merge", 1, 1)):
                code, error = games(tmp_path, capsys, *words, "--yes")
                assert code == 1
                assert "is in use by process" in error
            assert not (tmp_path / "other.db").exists()
            gateway.idle()
    assert main(["games", "list", str(tmp_path / "gateway.toml")]) == 0
    assert capsys.readouterr().out.startswith("1: homework: 60 rounds, threshold ")


@pytest.mark.parametrize("words", [("reset",), ("move", "--game", 1, "--to", "other.db"), ("merge", 1, 2)])
def test_without_yes_nothing_changes(played: Path, capsys: pytest.CaptureFixture[str], words: tuple[Any, ...]) -> None:
    """The command says what it would do to the promise, and ends with exit code 2."""
    if words[0] == "merge":
        games(played, capsys, "reset", "--yes")
    before = states(played, capsys)
    code, error = games(played, capsys, *words)
    assert code == 2
    assert "nothing was changed. With --yes:" in error
    assert "promise" in error
    assert states(played, capsys) == before


def test_a_reset_begins_another_promise(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The old game ends and can be audited; the next gateway begins with a threshold of 0."""
    report = games(played, capsys, "reset", "--yes")
    assert (report["game"], report["ended"], report["threshold"]) == (2, 1, 0.0)
    assert any("ends after 60 rounds: what it promised stays true" in one for one in report["promise"])
    assert any("own alpha of 0.1" in one and "up to 0.2" in one for one in report["promise"])
    assert states(played, capsys) == [(1, "ended", "reset"), (2, "warming_up", "")]
    with ScriptedServer(KnownPair()) as models:
        (first,) = asked(configured(played, models.base_url), 100, 1)
    assert first["x-bpac-decision"].startswith("dec-2-1-")
    assert float(first["x-bpac-threshold"]) == 0.0
    for number, rounds in ((1, 60), (2, 1)):
        audit = audit_journal(export(played, capsys, "--game", str(number)))
        assert (audit.rounds, audit.differences, audit.unproved) == (rounds, [], [])


def test_segments_are_reset_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A segment has to be named, and the others go on."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url, segment_by="user")
        for segment in ("ann", "bob"):
            asked(config, 0, 3, {"user": segment})
        code, error = games(tmp_path, capsys, "reset", "--yes")
        assert (code, "give --segment" in error) == (2, True)
        code, error = games(tmp_path, capsys, "reset", "--segment", "eve", "--yes")
        assert (code, "there is nothing to reset" in error) == (2, True)
        games(tmp_path, capsys, "reset", "--segment", "ann", "--yes")
        (ann,), (bob,) = (asked(config, 9, 1, {"user": segment}) for segment in ("ann", "bob"))
    assert ann["x-bpac-decision"].startswith("dec-3-1-")
    assert bob["x-bpac-decision"].startswith("dec-2-4-")


def test_a_moved_game_goes_on_in_its_new_store_alone(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its journal and hash chain are the same to the byte; where it was, another game begins."""
    before = export(played, capsys)
    elsewhere = played / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "bpac.db"
    report = games(played, capsys, "move", "--game", 1, "--to", target, "--yes")
    assert (report["game"], report["rounds"], report["new_game"]) == (1, 60, 2)
    assert json.loads(before[-1]).get("head", report["head"]) == report["head"]
    with ScriptedServer(KnownPair()) as models:
        old, new = (configured(place, models.base_url) for place in (played, elsewhere))
        assert export(elsewhere, capsys) == before
        (there,) = asked(new, 100, 1)
        (here,) = asked(old, 100, 1)
    assert there["x-bpac-decision"].startswith("dec-1-61-")
    assert here["x-bpac-decision"].startswith("dec-2-1-")
    assert states(played, capsys)[0] == (1, "ended", f"moved to {target}")
    assert states(elsewhere, capsys)[0][:2] == (1, "routing")
    audit = audit_journal(export(elsewhere, capsys))
    assert (audit.rounds, audit.differences, audit.unproved) == (61, [], [])
    with closing(open_store(f"sqlite:///{target}", read_only=True)) as store:
        assert store.losses() == []


def test_a_game_with_archived_entries_is_moved_with_what_takes_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes on where it was moved to, and archive and export still pass their audit together."""
    with ScriptedServer(KnownPair()) as models:
        config = configured(tmp_path, models.base_url)
        config["gateway"]["snapshot_every"] = 20
        asked(config, 0, 60)
        archive = ["archive", str(tmp_path / "gateway.toml"), "--out", str(tmp_path / "archives"), "--keep", "10"]
        assert main([*archive, "--json"]) == 0
        (made,) = json.loads(capsys.readouterr().out)["archives"]
        (tmp_path / "elsewhere").mkdir()
        games(tmp_path, capsys, "move", "--game", 1, "--to", tmp_path / "elsewhere" / "bpac.db", "--yes")
        (there,) = asked(configured(tmp_path / "elsewhere", models.base_url), 100, 1)
    assert there["x-bpac-decision"].startswith("dec-1-61-")
    archived = Path(made["file"]).read_text().splitlines()
    audit = audit_journal(archived + export(tmp_path / "elsewhere", capsys))
    assert (audit.rounds, audit.differences) == (61, [])


def test_a_game_cannot_be_moved_twice(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its wealth would be spent in two places; the same move may be repeated, and changes nothing."""
    first = games(played, capsys, "move", "--game", 1, "--to", played / "one.db", "--yes")
    assert games(played, capsys, "move", "--game", 1, "--to", played / "one.db", "--yes") == first
    code, error = games(played, capsys, "move", "--game", 1, "--to", played / "two.db", "--yes")
    assert (code, "is over (moved to" in error) == (2, True)
    code, error = games(played, capsys, "move", "--game", 7, "--to", played / "two.db", "--yes")
    assert (code, "there is no game 7; there are 1: homework, 2: homework" in error) == (2, True)
    code, error = games(played, capsys, "move", "--game", 2, "--to", played / "bpac.db", "--yes")
    assert (code, "is the store that the game is in" in error) == (2, True)


def test_a_move_that_crashed_is_finished_by_the_same_command(
    played: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the crash the game is over and nowhere else, so that no gateway can go on with it."""

    def crash(*_: object) -> None:
        raise OSError("the machine lost power")

    with monkeypatch.context() as broken:
        broken.setattr(SqlitePlace, "adopt", crash)
        code, _ = games(played, capsys, "move", "--game", 1, "--to", played / "one.db", "--yes")
    assert code == 1
    assert [state for _, state, _ in states(played, capsys)] == ["ended", "warming_up"]
    with closing(open_store(f"sqlite:///{played / 'one.db'}", read_only=True)) as store:
        assert store.games() == []
    report = games(played, capsys, "move", "--game", 1, "--to", played / "one.db", "--yes")
    assert (report["rounds"], report["new_game"]) == (60, 2)


def test_a_game_is_not_moved_onto_another_one(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither where its number is taken, because that is part of the hash chain, nor where its route has a game."""
    assert games(played, capsys, "move", "--game", 1, "--to", played / "same.db", "--yes")["game"] == 1
    code, error = games(played, capsys, "move", "--game", 2, "--to", played / "same.db", "--yes")
    assert (code, "has a game of homework already" in error) == (2, True)
    with closing(SqliteStore(str(played / "full.db"))) as other:
        for _ in range(2):
            other.open_game("another", "", "{}")
    code, error = games(played, capsys, "move", "--game", 2, "--to", played / "full.db", "--yes")
    assert (code, "has another game 2" in error) == (2, True)
    assert states(played, capsys)[1][1] == "warming_up"


def test_games_are_merged_as_history_of_a_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two games of one route, with another epsilon each, teach a third; each round counts once."""
    with ScriptedServer(KnownPair()) as models:
        for epsilon, first in ((0.3, 0), (0.35, 500)):
            asked(configured(tmp_path, models.base_url, epsilon=epsilon), first, 80)
        config = configured(tmp_path, models.base_url)
        report = games(tmp_path, capsys, "merge", 1, 2, "--yes")
        assert (report["game"], report["history"], report["ended"]) == (3, 160, None)
        assert report["threshold"] > 0.0
        assert "cannot be joined into one after the fact" in report["promise"][0]
        (first_,) = asked(config, 900, 1)
        assert first_["x-bpac-decision"].startswith("dec-3-1-")
        # Their terms are others, so that they could go on if these were in force again.
        assert [state for _, state, _ in states(tmp_path, capsys)] == ["left", "left", "routing"]
        assert states(tmp_path, capsys)[1][2] == "epsilon changed from 0.35 to 0.4"
        again = games(tmp_path, capsys, "merge", 1, 2, "--yes")
        assert (again["game"], again["ended"], again["threshold"]) == (4, 3, report["threshold"])
        assert states(tmp_path, capsys)[2] == (3, "ended", "merged from games 1, 2")
        for words, said in (
            ((1, 1), "two or more games, each once"),
            ((1,), "two or more games, each once"),
            ((1, 3), "began from history itself"),
            ((1, 9), "there is no game 9"),
        ):
            code, error = games(tmp_path, capsys, "merge", *words, "--yes")
            assert (code, said in error) == (2, True), error
    audit = audit_journal(export(tmp_path, capsys, "--game", "3"))
    assert (audit.rounds, audit.differences) == (1, [])


def test_games_of_other_terms_or_routes_are_not_merged(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their losses are about something else; nothing changes."""
    games(played, capsys, "reset", "--yes")
    configured(played, score="perplexity")
    code, error = games(played, capsys, "merge", 1, 2, "--yes")
    assert (code, "score.kind changed" in error) == (2, True)
    configured(played, policy="paper-prior")
    code, error = games(played, capsys, "merge", 1, 2, "--yes")
    assert (code, "cannot start from history" in error) == (2, True)
    assert len(states(played, capsys)) == 2


def test_stores_that_keep_nothing_have_no_games_to_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error says what can be done."""
    configured(tmp_path)
    code, error = games(tmp_path, capsys, "reset", "--yes")
    assert (code, "there is no game yet" in error) == (2, True)
    text = (tmp_path / "gateway.toml").read_text()
    (tmp_path / "gateway.toml").write_text(text.replace(f"sqlite:///{tmp_path / 'bpac.db'}", "memory://"))
    code, error = games(tmp_path, capsys, "reset", "--yes")
    assert (code, "SQLite stores" in error) == (2, True)
