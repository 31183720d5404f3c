import asyncio
import io
import os
import pty
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from bpac.answer import Answer
from bpac.benchmarks.benchmark import Question
from bpac.cli.main import main
from bpac.collecting.answers_file import Role
from bpac.dashboard.history import History
from bpac.demo.asking import ServedAnswer
from bpac.demo.live import Live
from bpac.demo.pair import ModelPair, PairModel, started_pair
from bpac.demo.place import ROUTE, USUAL_PORT, Place, chosen_port
from bpac.demo.truth import Truth, truth_of
from bpac.demo.words import standing
from bpac.errors import BpacError, InputError, StoreInUse
from bpac.gateway.config.file import load_config
from bpac.gateway.games.savings import SavingsReport
from bpac.gateway.games.status import game_status
from bpac.routing.router import Router
from bpac.stores.sqlite.ownership import Ownership
from bpac.stores.store import Game

PAIR = ModelPair(
    "two", {"draft": PairModel("http://a", "small"), "expert": PairModel("http://b", 'a "large" one', {"n": 1})}, ()
)


def test_the_configuration_is_the_gateways(tmp_path: Path) -> None:
    """What is written is what a gateway reads, whatever the names."""
    place = Place(tmp_path / "näh e")
    place.prepare()
    place.write_config(PAIR, 8123)
    config = load_config(place.config)
    route = config.routes[ROUTE]
    assert (config.host, config.port) == ("127.0.0.1", 8123)
    assert config.store == f"sqlite:///{place.store.resolve()}"
    assert (route.draft.model, route.expert.model, route.expert.body) == ("small", 'a "large" one', {"n": 1})


def test_only_a_demos_own_files_are_replaced(tmp_path: Path) -> None:
    """An earlier demo's files go; a directory with anything else in it is refused and left as it is."""
    place = Place(tmp_path / "demo")
    place.prepare()
    place.write_config(PAIR, 8123)
    place.store.write_text("journal")
    (place.directory / "notes.txt").write_text("mine")
    place.prepare()
    assert not place.store.exists()
    assert (place.directory / "notes.txt").read_text() == "mine"
    place.config.write_text("[gateway]\n")
    place.store.write_text("somebody's journal")
    with pytest.raises(InputError, match="no demo wrote"):
        place.prepare()
    assert place.store.read_text() == "somebody's journal"
    with pytest.raises(InputError, match="no room"):
        Place(tmp_path / "what?").prepare()


def test_a_demo_under_way_is_left_alone(tmp_path: Path) -> None:
    """A second demo in the same directory is refused; the journal of the first stays."""
    place = Place(tmp_path)
    place.write_config(PAIR, 8123)
    place.store.write_text("journal")
    owner = Ownership(str(place.store))
    owner.take()
    with pytest.raises(StoreInUse):
        place.prepare()
    owner.release()
    assert place.store.exists()


def test_ports() -> None:
    """A port that was asked for and is taken is an error; nobody asked, so any free one will do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(BpacError, match=f"port {number} is taken"):
            chosen_port(number)
    assert chosen_port(number) == number
    with socket.socket() as usual:
        usual.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            usual.bind(("127.0.0.1", USUAL_PORT))
            usual.listen()
        except OSError:
            pass  # somebody else has it, which is just as good
        assert chosen_port(None) != USUAL_PORT


@pytest.mark.parametrize("mistake", [["--questions", "0"], ["--port", "70000"], ["--port", "x"]])
def test_wrong_usage(mistake: list[str], tmp_path: Path) -> None:
    """Exit code 2, before anything is started or written."""
    try:
        code = main(["demo", *mistake, "--dir", str(tmp_path / "demo")])
    except SystemExit as error:
        code = int(error.code or 0)
    assert code == 2
    assert not (tmp_path / "demo").exists()


def test_why_the_local_pair_cannot_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights that are no weights, and a library that is not installed, are told; nobody asked, nothing is told."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no weights at all")
    with started_pair(False, 0, broken) as pair:
        assert pair.name == "scripted"
        assert "broken.gguf did not start" in (pair.instead_because or "")
    assert "a scripted pair takes its place" in capsys.readouterr().err
    monkeypatch.setattr("bpac.local.server.importlib.util.find_spec", lambda name: None)
    with started_pair(False, 0, broken) as pair:
        assert "pip install 'bpac[local]'" in (pair.instead_because or "")
    assert "xllamacpp" in capsys.readouterr().err
    with started_pair(True, 0, broken) as pair:
        assert pair.instead_because is None
    assert capsys.readouterr().err == ""


def test_the_truth_of_four_answers(tmp_path: Path) -> None:
    """Kept drafts lose where they differ from the expert, right or wrong; audited ones lose nothing."""
    place = Place(tmp_path)
    place.write_config(PAIR, 8123)
    said: dict[Role, tuple[str, ...]] = {
        "draft": ("right", "wrong", "right", "wrong"),
        "expert": ("right", "right", "wrong", "right"),
    }
    tokens: dict[Role, int] = {"draft": 2, "expert": 10}
    questions = [Question(str(number), f"{number}?", "right") for number in range(4)]
    answers = {
        (question, role): Answer(text, completion_tokens=tokens[role])
        for role, texts in said.items()
        for question, text in zip(questions, texts, strict=True)
    }
    by: tuple[Role, ...] = ("draft", "draft", "draft", "expert")
    served = [
        ServedAnswer(question, step, role, answers[question, role])
        for step, (question, role) in enumerate(zip(questions, by, strict=True), start=1)
    ]
    assert asyncio.run(truth_of(served, answers, load_config(place.config).routes[ROUTE])) == Truth(
        questions=4,
        losses={1: 0.0, 2: 1.0, 3: 1.0, 4: 0.0},
        served_loss=2 / 4,
        draft_loss=3 / 4,
        expert_tokens=4 * 10,
        tokens_saved=4 * 10 - 10 - 4 * 2,
        served_right=3 / 4,
        draft_right=2 / 4,
        expert_right=3 / 4,
    )


def test_words_for_tokens_saved() -> None:
    """The upper bound is said with what it assumes, or not at all."""
    savings = SavingsReport(
        draft_tokens=20.0,
        expert_tokens=15.0,
        judge_tokens=0.0,
        always_tokens=40.0,
        tokens_saved=5.0,
        tokens_saved_at_least=-1.0,
        tokens_saved_at_most=9.0,
        longest_answer_assumed=1234.5,
        confidence=0.95,
    )
    router, history, stored = Router(epsilon=0.05, seed=1), History(), Game(1, ROUTE, "", "terms")
    assumed = standing(game_status(stored, router, history, savings))[2]
    assert assumed == "  tokens saved   5          -1 to 9 (95% each; the latter if no answer exceeds 1,234 tokens)"
    unbounded = standing(game_status(stored, router, history, replace(savings, tokens_saved_at_most=None)))[2]
    assert unbounded == "  tokens saved   5          at least -1 with 95% confidence"


def test_lines_are_redrawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second picture takes the place of the first, and no line is wider than the terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        live = Live(terminal)
        live.show(["one", "two " * 100], "short")
        live.show(["three"], "short")
        live.clear()
        live.say("four")
    seen = ""
    with os.fdopen(ours, "rb", buffering=0) as screen, suppress(OSError):  # which is the end of a terminal
        while True:
            seen += screen.read(10_000).decode()
    first, second, third = seen.split("\x1b[J")[:3]
    assert len(first.splitlines()[1].replace("\x1b[2K", "")) < 80
    assert second == "\r\x1b[2A\x1b[2Kthree\r\n"
    assert third == "\r\x1b[1A"
    assert seen.endswith("four\r\n")


def test_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be redrawn there is a plain line now and then; nothing with ``TQDM_DISABLE``."""
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    file = io.StringIO()
    always, seldom = Live(file, pause=0.0), Live(file, pause=1e9)
    for live in (always, seldom):
        live.show(["a", "b"], "first")
        live.show(["c", "d"], "second")
    assert file.getvalue().split() == ["first", "second", "first"]
    monkeypatch.setenv("TQDM_DISABLE", "1")
    silent = io.StringIO()
    Live(silent, pause=0.0).show(["a"], "first")
    assert silent.getvalue() == ""
