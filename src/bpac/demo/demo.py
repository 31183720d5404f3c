"""The demo: starts models and gateway, sends questions, computes the actual loss, and reports."""

import asyncio
import contextlib
import importlib.util
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

from bpac.arguments import whole
from bpac.benchmarks.benchmark import Question
from bpac.demo.client import ServedAnswer, ask_all, ask_slowly, client_of
from bpac.demo.dial import PAIR_QUESTIONS, DialSession, dial_truth
from bpac.demo.directory import ALPHA, DIAL, EPSILON, ROUTE, DemoDirectory, chosen_port
from bpac.demo.figure import draw_demo, read_series
from bpac.demo.gateway_process import GatewayProcess
from bpac.demo.ground_truth import GroundTruth, both_answers, ground_truth
from bpac.demo.live_display import LiveDisplay
from bpac.demo.pair import ModelPair, started_pair
from bpac.demo.report import DemoReport
from bpac.demo.signals import signals_as_keyboard_interrupt
from bpac.demo.status_lines import status_line, status_table, table_row
from bpac.errors import MissingExtra, Unavailable
from bpac.gateway.config.file import load_config
from bpac.local.server import MODEL
from bpac.replay.figures.canvas import save

# Seconds between two updates of the display, and between two questions after the first part of the demo.
REFRESH, PAUSE = 0.5, 0.2
# While the missing answers are requested, progress is shown every so many answers.
SHOW_EVERY = 20
# What is shown: the lines of a table, and the same in one line.
_View = Callable[[], Awaitable[tuple[list[str], str]]]


@dataclass(frozen=True, slots=True)
class Demo:
    """Settings of a demo.

    Parameters
    ----------
    directory: where its files are written; those of an earlier demo are replaced.
    questions: number of questions that are sent as fast as the models answer; the effort dial gets a fifth as many.
    once: whether to end after these questions; if not, the demo goes on slowly until Ctrl-C.
    scripted: whether to use the scripted pair of models.
    port: port of the gateway (default: 8800, or any free port if that is in use).
    seed: random seed of the questions.
    model: GGUF file of the local model.
    """

    directory: Path
    questions: int
    once: bool = False
    scripted: bool = False
    port: int | None = None
    seed: int = 0
    model: Path = MODEL

    def __post_init__(self) -> None:
        whole(self.questions, "questions", 1)
        if self.port is not None:
            whole(self.port, "port", 1, 65_535)

    def run(self) -> DemoReport:
        """Run the demo; raises ``KeyboardInterrupt`` if it was stopped before any question was answered."""
        if importlib.util.find_spec("matplotlib") is None:  # fails now and not after all questions
            raise MissingExtra("matplotlib", "demo")
        port, directory = chosen_port(self.port), DemoDirectory(self.directory)
        directory.prepare()
        with signals_as_keyboard_interrupt(), started_pair(self.scripted, self.seed, self.model) as pair:
            directory.write_config(pair, port)
            with GatewayProcess(directory, port) as gateway:
                session = DemoSession(self, pair, directory, gateway, _dial(self, directory))
                try:
                    asyncio.run(session.run())
                except KeyboardInterrupt:
                    if not session.served:
                        raise
                except Unavailable as error:
                    raise gateway.failure(f"or a model failed ({error})") from error
                gateway.wait_until_idle()
                game = gateway.status()
                dial = None if session.dial is None else session.dial.report(gateway.status(DIAL))
            session.draw()
            session.display.clear()
        return DemoReport(
            pair=pair.name,
            instead_because=pair.instead_because,
            questions=len(session.served),
            wanted=self.questions,
            seconds=session.seconds,
            game=game,
            truth=session.truth,
            dashboard=gateway.dashboard,
            directory=directory,
            dial=dial,
        )


@dataclass(slots=True)
class DemoSession:
    """The part of a demo in which questions are sent.

    Parameters
    ----------
    demo, pair, directory, gateway: the demo and its parts.
    dial: the questions to the effort dial; None if the models have none.
    display: shows progress.
    shown: the lines that are shown.
    served: the answers so far.
    truth: actual losses and savings, once they are known.
    began, ended: when the first and the last of the questions were sent that are sent as fast as possible.
    """

    demo: Demo
    pair: ModelPair
    directory: DemoDirectory
    gateway: GatewayProcess
    dial: DialSession | None = None
    display: LiveDisplay = field(default_factory=LiveDisplay)
    shown: list[str] = field(default_factory=list)
    served: list[ServedAnswer] = field(default_factory=list)
    truth: GroundTruth | None = None
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    @property
    def seconds(self) -> float:
        """Time of the questions that are sent as fast as possible, so far."""
        return (self.ended or time.monotonic()) - self.began

    async def run(self) -> None:
        """Send all questions, compute the actual loss, and go on slowly unless the demo is to end."""
        self.display.print(f"The {self.pair.name} pair behind a gateway; dashboard: {self.gateway.dashboard}")
        questions = self._questions()
        async with client_of(self.gateway.base_url) as client:
            some = islice(questions, self.demo.questions)
            await self._with_display(ask_all(client, ROUTE, some, self.served.append), self._pair_view)
            self.ended = time.monotonic()
            answers = await both_answers(self.pair, self.served, self._show_afterwards)
            route = load_config(self.directory.config).routes[ROUTE]
            self.truth = await ground_truth(self.served, answers, route)
            if (dial := self.dial) is not None:
                await self._with_display(dial.ask(client, islice(questions, dial.wanted)), self._dial_view)
                dial.truth = await dial_truth(self.pair, dial.served, answers, dial.route, self._show_afterwards)
            if not self.demo.once:
                self.draw()
                slowly = ask_slowly(client, ROUTE, questions, self.served.append, PAUSE)
                await self._with_display(slowly, self._pair_view)

    def draw(self) -> None:
        """Draw the figure of the journal so far."""
        title = f"The {self.pair.name} pair behind the gateway: ε = {EPSILON:g}, α = {ALPHA:g}"
        save(draw_demo(read_series(self.directory), self.truth, title), self.directory.figure)

    def _questions(self) -> Iterator[Question]:
        # Independent and identically distributed: the promise is about such streams.
        rng = Random(self.demo.seed)
        while True:
            yield rng.choice(self.pair.questions)

    async def _with_display(self, work: Coroutine[None, None, None], view: _View) -> None:
        """Do the work, and show the status of a game meanwhile."""
        refreshing = asyncio.create_task(self._refresh_repeatedly(view))
        try:
            await work
        finally:
            refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await refreshing
        await self._refresh(view)

    async def _refresh_repeatedly(self, view: _View) -> None:
        while True:
            await self._refresh(view)
            await asyncio.sleep(REFRESH)

    async def _refresh(self, view: _View) -> None:
        # If the gateway does not answer, the questions fail too, and their error says more.
        with contextlib.suppress(OSError):
            rows, line = await view()
            self.shown = [*rows, table_row("dashboard", self.gateway.dashboard)]
            self.display.show(self.shown, line)

    async def _pair_view(self) -> tuple[list[str], str]:
        game = await asyncio.to_thread(self.gateway.status)
        asked, wanted = len(self.served), self.demo.questions
        rate = f"{asked / max(self.seconds, 1e-9):.0f} per second"
        of = f"of {wanted:,}, {rate}" if self.ended is None else "Ctrl-C ends the demo"
        rows = [table_row("questions", f"{asked:,}", of), *status_table(game)]
        if (truth := self.truth) is not None:
            first = f"in the first {truth.questions:,} questions"
            rows.append(table_row("actual loss", f"{truth.served_loss:.2%}", first))
        return rows, f"{asked:,} {of}: {status_line(game)}"

    async def _dial_view(self) -> tuple[list[str], str]:
        assert self.dial is not None  # it is shown only while it is asked
        return self.dial.table(await asyncio.to_thread(self.gateway.status, DIAL))

    def _show_afterwards(self, done: int, total: int) -> None:
        if done % SHOW_EVERY:
            return
        progress = f"{done:,} of {total:,} missing answers requested, to compute the actual loss"
        self.display.show([*self.shown, table_row("now", progress)], progress)


def _dial(demo: Demo, directory: DemoDirectory) -> DialSession | None:
    """The questions to the effort dial; none if the models have no dial."""
    route = load_config(directory.config).routes.get(DIAL)
    return None if route is None else DialSession(max(1, demo.questions // PAIR_QUESTIONS), route)
