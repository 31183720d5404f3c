"""A demo from its beginning to its end."""

import asyncio
import contextlib
import importlib.util
import time
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random

from bpac.arguments import whole
from bpac.benchmarks.benchmark import Question
from bpac.demo.asking import ServedAnswer, ask_all, ask_slowly, client_of
from bpac.demo.gateway_process import GatewayProcess
from bpac.demo.interrupts import heard_as_ctrl_c
from bpac.demo.live import Live
from bpac.demo.pair import ModelPair, started_pair
from bpac.demo.picture import course_of, draw_course
from bpac.demo.place import ALPHA, EPSILON, ROUTE, Place, chosen_port
from bpac.demo.report import Report
from bpac.demo.truth import Truth, both_answers, truth_of
from bpac.demo.words import in_short, row, standing
from bpac.errors import MissingExtra, Unavailable
from bpac.gateway.config.file import load_config
from bpac.local.server import MODEL
from bpac.replay.figures.canvas import save

# Seconds between two looks at the gateway, and between two questions when all have been asked.
LOOK, SLOWLY = 0.5, 0.2
# Of the answers asked for afterwards, each so many are shown.
EACH = 20


@dataclass(frozen=True, slots=True)
class Demo:
    """What a demo is to do.

    Parameters
    ----------
    directory: where its files go; those of an earlier demo there are overwritten.
    questions: how many are asked as fast as the pair answers.
    once: end when the questions are answered, and not only at Ctrl-C.
    scripted: take a scripted pair of models.
    port: of the gateway; the usual one or any free one if not given.
    seed: of the questions.
    model: the weights of the local pair.
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

    def run(self) -> Report:
        """Everything; ``KeyboardInterrupt`` if it was stopped before there was anything to report."""
        if importlib.util.find_spec("matplotlib") is None:  # better now than when all has been asked
            raise MissingExtra("matplotlib", "demo")
        port, place = chosen_port(self.port), Place(self.directory)
        place.prepare()
        with heard_as_ctrl_c(), started_pair(self.scripted, self.seed, self.model) as pair:
            place.write_config(pair, port)
            with GatewayProcess(place, port) as gateway:
                session = Session(self, pair, place, gateway)
                try:
                    asyncio.run(session.run())
                except KeyboardInterrupt:
                    if not session.served:
                        raise
                except Unavailable as error:
                    raise gateway.complaint(f"or a model failed ({error})") from error
                gateway.rest()
                game = gateway.status()
            session.draw()
            session.live.clear()
        return Report(
            pair=pair.name,
            instead_because=pair.instead_because,
            questions=len(session.served),
            wanted=self.questions,
            seconds=session.seconds,
            game=game,
            truth=session.truth,
            dashboard=gateway.dashboard,
            place=place,
        )


@dataclass(slots=True)
class Session:
    """The part of a demo in which questions are asked.

    Parameters
    ----------
    demo, pair, place, gateway: what is asked of whom.
    """

    demo: Demo
    pair: ModelPair
    place: Place
    gateway: GatewayProcess
    live: Live = field(default_factory=Live)
    shown: list[str] = field(default_factory=list)
    served: list[ServedAnswer] = field(default_factory=list)
    truth: Truth | None = None
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None

    @property
    def seconds(self) -> float:
        """How long the questions took that are asked as fast as they are answered."""
        return (self.ended or time.monotonic()) - self.began

    async def run(self) -> None:
        """Ask all questions, find out what was really lost, and unless it is once only go on asking, slowly."""
        self.live.say(f"The {self.pair.name} pair behind a gateway; dashboard: {self.gateway.dashboard}")
        questions = self._questions()
        async with client_of(self.gateway.base_url) as client:
            some = islice(questions, self.demo.questions)
            await self._watched(ask_all(client, ROUTE, some, self.served.append))
            self.ended = time.monotonic()
            answers = await both_answers(self.pair, self.served, self._show_afterwards)
            self.truth = await truth_of(self.served, answers, load_config(self.place.config).routes[ROUTE])
            if not self.demo.once:
                self.draw()
                await self._watched(ask_slowly(client, ROUTE, questions, self.served.append, SLOWLY))

    def draw(self) -> None:
        """Draw the picture of the journal as it is."""
        title = f"The {self.pair.name} pair behind the gateway: ε = {EPSILON:g}, α = {ALPHA:g}"
        save(draw_course(course_of(self.place), self.truth, title), self.place.picture)

    def _questions(self) -> Iterator[Question]:
        # Drawn independently, each as likely as any other: the promise is about such streams.
        rng = Random(self.demo.seed)
        while True:
            yield rng.choice(self.pair.questions)

    async def _watched(self, work: Coroutine[None, None, None]) -> None:
        """Do the work, and show meanwhile where the game stands."""
        watching = asyncio.create_task(self._watch())
        try:
            await work
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        await self._look()

    async def _watch(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(LOOK)

    async def _look(self) -> None:
        # A gateway that does not answer fails the questions, too, and they say it better.
        with contextlib.suppress(OSError):
            game = await asyncio.to_thread(self.gateway.status)
            asked, wanted = len(self.served), self.demo.questions
            rate = f"{asked / max(self.seconds, 1e-9):.0f} a second"
            of = f"of {wanted:,}, {rate}" if self.ended is None else "Ctrl-C ends the demo"
            self.shown = [row("questions", f"{asked:,}", of), *standing(game)]
            if (truth := self.truth) is not None:
                self.shown.append(row("really lost", f"{truth.served_loss:.2%}", f"in {truth.questions:,} questions"))
            self.shown.append(row("dashboard", self.gateway.dashboard))
            self.live.show(self.shown, f"{asked:,} {of}: {in_short(game)}")

    def _show_afterwards(self, done: int, total: int) -> None:
        if done % EACH:
            return
        so_far = f"{done:,} of {total:,} spared answers, to see what was really lost"
        self.live.show([*self.shown, row("asking", so_far)], f"asking {so_far}")
