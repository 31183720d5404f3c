"""A gateway on a real socket, in a thread of its own, in front of scripted models."""

import asyncio
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import uvicorn.server
from openai import OpenAI

from bpac.gateway.app import Gateway
from bpac.gateway.config.file import Config
from bpac.gateway.http.connections import disconnects
from bpac.gateway.server import GatewayServer, new_server
from bpac.gateway.service import Service
from bpac.testing import Reply, Request, Script, ScriptedServer
from tests.gateway.configured import get_json, settings, wait_for


class _QuickPauses:
    """What uvicorn's server uses of asyncio, with pauses of a tenth of their length: it looks ten times a second
    whether it should stop, and a thousand tests would wait for that.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        """Pause for a tenth of that time."""
        await asyncio.sleep(seconds / 10.0)


uvicorn.server.asyncio = _QuickPauses()  # type: ignore[assignment,attr-defined]
# Callers who leave are noticed sooner, too.
disconnects.UNWATCHED = 0.1

MESSAGES: Any = [{"role": "user", "content": "6 * 7?"}]
ASK: dict[str, Any] = {"model": "homework", "messages": MESSAGES}


def pair(draft: Script | Reply, expert: Script | Reply) -> Script:
    """A script that answers as the model that is asked for."""

    def script(request: Request) -> Reply:
        chosen = draft if request.body["model"] == "draft" else expert
        return chosen if isinstance(chosen, Reply) else chosen(request)

    return script


class RunningGateway:
    """A gateway that runs in a ``with`` block and must leave nothing behind at its end."""

    def __init__(self, config: dict[str, Any]) -> None:
        # What a reload reads.
        self.config: Mapping[str, Any] = config
        self._server: GatewayServer = new_server(Config.read(config), lambda: Config.read(self.config))
        app = self._server.config.app
        assert isinstance(app, Gateway)
        self.service: Service = app.service
        self._failure: BaseException | None = None
        self.left_over: set[Any] = set()
        self._clients: list[OpenAI] = []
        self._thread = threading.Thread(target=self._run, name="gateway")

    def _run(self) -> None:
        async def main() -> None:
            self.loop = asyncio.get_running_loop()
            await self._server.serve()
            self.left_over = asyncio.all_tasks() - {asyncio.current_task()}

        try:
            with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
                runner.run(main())
        except BaseException as error:
            self._failure = error

    def __enter__(self) -> Self:
        self._thread.start()
        wait_for(lambda: self._server.started or not self._thread.is_alive())
        assert self._server.started, self._failure
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join(60.0)
        assert not self._thread.is_alive()
        if error is None:
            assert self._failure is None
            assert not self.left_over

    def client(self, key: str = "none", **options: Any) -> OpenAI:
        """The official client, unmodified."""
        client = OpenAI(base_url=f"{self.url}/v1", api_key=key, **{"max_retries": 0, "timeout": 60.0, **options})
        self._clients.append(client)
        return client

    def stop(self) -> None:
        """Begin to stop."""
        self._server.should_exit = True

    def reload(self, config: Mapping[str, Any]) -> bool:
        """Reload another configuration, as SIGHUP does; false if it cannot be used."""
        self.config = config
        return asyncio.run_coroutine_threadsafe(self._server.reloads.reload(), self.loop).result(60.0)

    def idle(self) -> None:
        """Wait until every audit is done."""
        wait_for(lambda: self.service.busy == 0)

    def status(self) -> dict[str, Any]:
        """The status of the one game of the one route."""
        (game,) = get_json(f"{self.url}/v1/status")["routes"]["homework"]
        assert isinstance(game, dict)
        return game


class Running:
    """Scripted models, and a gateway in front of them."""

    def __init__(self, script: Script | Reply, **options: Any) -> None:
        self.models = ScriptedServer(script)
        self._options = options

    def __enter__(self) -> tuple[RunningGateway, ScriptedServer]:
        self.models.__enter__()
        try:
            self._gateway = RunningGateway(settings(self.models.base_url, **self._options))
            return self._gateway.__enter__(), self.models
        except BaseException:
            self.models.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._gateway.__exit__(kind, error, trace)
        finally:
            self.models.__exit__(kind, error, trace)
