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
from bpac.cli.program import main
from bpac.collecting.answers_file import Role
from bpac.dashboard.history.history import History
from bpac.demo.client import ServedAnswer
from bpac.demo.directory import DEFAULT_PORT, ROUTE, DemoDirectory, chosen_port
from bpac.demo.ground_truth import Answers, GroundTruth, ground_truth
from bpac.demo.live_display import LiveDisplay
from bpac.demo.pair import ModelPair, PairModel, started_pair
from bpac.demo.status_lines import status_table
from bpac.errors import BpacError, InputError, StoreInUse
from bpac.gateway.config.file import load_config
from bpac.gateway.games.money.savings import SavingsReport
from bpac.gateway.games.shown.status import game_status
from bpac.routing.router import Router
from bpac.stores.sqlite.writing.ownership import Ownership
from bpac.stores.store import Game

PAIR = ModelPair(
    "two", {"draft": PairModel("http://a", "small"), "expert": PairModel("http://b", 'a "large" one', {"n": 1})}, ()
)


def test_the_gateway_can_read_the_configuration(tmp_path: Path) -> None:
    """Names and paths with quotes, spaces and other letters are read back as they were."""
    directory = DemoDirectory(tmp_path / "näh e")
    directory.prepare()
    directory.write_config(PAIR, 8123)
    config = load_config(directory.config)
    route = config.routes[ROUTE]
    assert (config.host, config.port) == ("127.0.0.1", 8123)
    assert config.store == f"sqlite:///{directory.store.resolve()}"
    assert (route.draft.model, route.expert.model, route.expert.body) == ("small", 'a "large" one', {"n": 1})


def test_only_files_of_an_earlier_demo_are_replaced(tmp_path: Path) -> None:
    """A directory that no demo has written to is refused and left unchanged."""
    directory = DemoDirectory(tmp_path / "demo")
    directory.prepare()
    directory.write_config(PAIR, 8123)
    directory.store.write_text("journal")
    (directory.path / "notes.txt").write_text("mine")
    directory.prepare()
    assert not directory.store.exists()
    assert (directory.path / "notes.txt").read_text() == "mine"
    directory.config.write_text("[gateway]\n")
    directory.store.write_text("somebody's journal")
    with pytest.raises(InputError, match="no demo wrote"):
        directory.prepare()
    assert directory.store.read_text() == "somebody's journal"
    with pytest.raises(InputError, match="must not contain"):
        DemoDirectory(tmp_path / "what?").prepare()


def test_the_directory_of_a_running_demo_is_refused(tmp_path: Path) -> None:
    """A second demo in the same directory is refused, and the journal of the first is kept."""
    directory = DemoDirectory(tmp_path)
    directory.write_config(PAIR, 8123)
    directory.store.write_text("journal")
    owner = Ownership(str(directory.store))
    owner.take()
    with pytest.raises(StoreInUse):
        directory.prepare()
    owner.release()
    assert directory.store.exists()


def test_a_port_in_use_is_refused_or_avoided() -> None:
    """A given port that is in use is an error; if the default port is in use, another one is chosen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(BpacError, match=f"port {number} is already in use"):
            chosen_port(number)
    assert chosen_port(number) == number
    with socket.socket() as usual:
        usual.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            usual.bind(("127.0.0.1", DEFAULT_PORT))
            usual.listen()
        except OSError:
            pass  # another process uses it, which serves as well
        assert chosen_port(None) != DEFAULT_PORT


@pytest.mark.parametrize("mistake", [["--questions", "0"], ["--port", "70000"], ["--port", "x"]])
def test_wrong_options_exit_with_2_before_anything_is_written(mistake: list[str], tmp_path: Path) -> None:
    """Neither the directory nor a process is created."""
    try:
        code = main(["demo", *mistake, "--dir", str(tmp_path / "demo")])
    except SystemExit as error:
        code = int(error.code or 0)
    assert code == 2
    assert not (tmp_path / "demo").exists()


def test_the_reason_why_the_local_model_cannot_run_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken model file and a missing library are reported, and nothing if the scripted pair was wanted."""
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no weights at all")
    with started_pair(False, 0, broken) as pair:
        assert pair.name == "scripted"
        assert "broken.gguf did not start" in (pair.instead_because or "")
    assert "using a scripted pair instead" in capsys.readouterr().err
    monkeypatch.setattr("bpac.local.server.importlib.util.find_spec", lambda name: None)
    with started_pair(False, 0, broken) as pair:
        assert "pip install 'bpac[local]'" in (pair.instead_because or "")
    assert "xllamacpp" in capsys.readouterr().err
    with started_pair(True, 0, broken) as pair:
        assert pair.instead_because is None
    assert capsys.readouterr().err == ""


def test_the_ground_truth_of_four_answers(tmp_path: Path) -> None:
    """Served drafts have a loss where they differ from the expert, correct or not; the expert's answers have none."""
    directory = DemoDirectory(tmp_path)
    directory.write_config(PAIR, 8123)
    said: dict[Role, tuple[str, ...]] = {
        "draft": ("right", "wrong", "right", "wrong"),
        "expert": ("right", "right", "wrong", "right"),
    }
    tokens: dict[Role, int] = {"draft": 2, "expert": 10}
    questions = [Question(str(number), f"{number}?", "right") for number in range(4)]
    answers: Answers = {
        (question, role): Answer(text, completion_tokens=tokens[role])
        for role, texts in said.items()
        for question, text in zip(questions, texts, strict=True)
    }
    by: tuple[Role, ...] = ("draft", "draft", "draft", "expert")
    served = [
        ServedAnswer(question, step, role, answers[question, role])
        for step, (question, role) in enumerate(zip(questions, by, strict=True), start=1)
    ]
    assert asyncio.run(ground_truth(served, answers, load_config(directory.config).routes[ROUTE])) == GroundTruth(
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


def test_the_upper_bound_on_tokens_saved_is_shown_with_its_assumption() -> None:
    """The longest answer that it assumes is named; without an upper bound only the lower one is shown."""
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
    assumed = status_table(game_status(stored, router, history, savings))[2]
    assert assumed == (
        "  tokens saved   5          between -1 and 9 (95% confidence each; "
        "the upper bound assumes answers of at most 1,234 tokens)"
    )
    unbounded = status_table(game_status(stored, router, history, replace(savings, tokens_saved_at_most=None)))[2]
    assert unbounded == "  tokens saved   5          at least -1 with 95% confidence"


def test_lines_are_redrawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """New lines replace the old ones, and no line is wider than the terminal."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        live = LiveDisplay(terminal)
        live.show(["one", "two " * 100], "short")
        live.show(["three"], "short")
        live.clear()
        live.print("four")
    seen = ""
    with os.fdopen(ours, "rb", buffering=0) as screen, suppress(OSError):  # raised at the end of a terminal
        while True:
            seen += screen.read(10_000).decode()
    first, second, third = seen.split("\x1b[J")[:3]
    assert len(first.splitlines()[1].replace("\x1b[2K", "")) < 80
    assert second == "\r\x1b[2A\x1b[2Kthree\r\n"
    assert third == "\r\x1b[1A"
    assert seen.endswith("four\r\n")


def test_plain_lines_are_written_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line is written per pause, and none with ``TQDM_DISABLE``."""
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    file = io.StringIO()
    always, seldom = LiveDisplay(file, pause=0.0), LiveDisplay(file, pause=1e9)
    for live in (always, seldom):
        live.show(["a", "b"], "first")
        live.show(["c", "d"], "second")
    assert file.getvalue().split() == ["first", "second", "first"]
    monkeypatch.setenv("TQDM_DISABLE", "1")
    silent = io.StringIO()
    LiveDisplay(silent, pause=0.0).show(["a"], "first")
    assert silent.getvalue() == ""
