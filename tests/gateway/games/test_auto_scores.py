"""``score = "auto"``: the best score that the draft's model allows, fixed when the game opens."""

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.gateway.config.routes.auto_score import CANDIDATES
from bpac.gateway.games.terms import score_of
from bpac.gateway.server import new_server
from bpac.gateway.shared.shared_service import SharedService
from bpac.stores import open_store
from bpac.testing import Reply, Request, Script, ScriptedServer
from tests.gateway.configured import get_json, settings
from tests.gateway.raw import post
from tests.gateway.running import ASK, RunningGateway, pair
from tests.gateway.serving import to_toml
from tests.gateway.shared.replicas import Replica
from tests.gateway.workers.crew import Crew
from tests.redis_servers import RedisServer
from tests.stores.redis.shared_game import new_name

SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
JSON_SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}}
TOOLS = {"tools": [{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]}
CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"answer": 41}'}}
LOGPROBS, WORDS, NEITHER = CANDIDATES


def draft(kind: str) -> Script:
    """A draft's model that sends log-probabilities, or states its confidence in words, or does neither."""

    def script(request: Request) -> Reply:
        asked = "Confidence: WORDS" in str(request.question)
        if asked and kind == WORDS and "How likely" in str(request.question):
            return Reply("Confidence: very likely", logprobs=False)
        if request.body.get("tools"):
            return Reply("", tool_calls=(CALL,), finish_reason="tool_calls", logprobs=False)
        text = '{"answer": 41}' if request.body.get("response_format") else "41"
        if asked and kind == WORDS:
            text += "\nConfidence: likely"
        return Reply(text, logprobs=kind == LOGPROBS, probability=0.8)

    return script


@pytest.fixture
def models() -> Iterator[ScriptedServer]:
    """The models of a pair, whose script can be replaced."""
    with ScriptedServer(pair(draft(LOGPROBS), Reply("42"))) as server:
        yield server


def config(models: ScriptedServer, tmp_path: Path, **route: Any) -> dict[str, Any]:
    """A configuration whose games are kept."""
    gateway = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    return settings(models.base_url, gateway=gateway, **{"score": "auto", "policy": "never", **route})


def scores(tmp_path: Path) -> list[str]:
    """The scores of all games, in order."""
    with closing(open_store(f"sqlite:///{tmp_path / 'bpac.db'}", read_only=True)) as store:
        return [score_of(game.terms) for game in store.games()]


def changes(gateway: RunningGateway) -> tuple[int, str | None]:
    """How often the score has changed, as the metrics say, and the score before, as the status says."""
    page = post(gateway.url, b"", "/metrics", method="GET").body.decode()
    (line,) = [line for line in page.splitlines() if line.startswith("bpac_score_changes_total{")]
    before = get_json(f"{gateway.url}/v1/status")["chosen_scores"]["homework"]["instead_of"]
    return int(float(line.split()[-1])), before


@pytest.mark.parametrize("kind", CANDIDATES)
def test_the_best_score_that_the_model_allows_is_taken(
    kind: str, models: ScriptedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Log, status, dashboard and the game's terms name it, and drafts have it."""
    models.script = pair(draft(kind), Reply("42"))
    with caplog.at_level(logging.INFO, "bpac.gateway"), RunningGateway(config(models, tmp_path)) as gateway:
        uncertainty = float(post(gateway.url, ASK).headers["x-bpac-uncertainty"])
        status = get_json(f"{gateway.url}/v1/status")
        shown = get_json(f"{gateway.url}/dashboard/data")["games"][0]
    assert uncertainty == pytest.approx({LOGPROBS: 0.2, WORDS: 1 - (1 + 0.7) / 2, NEITHER: 0.0}[kind])
    assert status["chosen_scores"]["homework"]["name"] == status["routes"]["homework"][0]["score"] == kind
    assert shown["score"] == f"{kind} (auto)"
    assert f'score = "auto": {kind} (' in caplog.text
    assert scores(tmp_path) == [kind]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("ask", "uncertainty"), [({}, 0.15), (JSON_SCHEMA, 1 - (1 + 0.85) / 2), (TOOLS, 1 - (1 + 0.85) / 2)],
    ids=["text", "json", "tools"],
)  # fmt: skip
def test_agreement_and_confidence_work_on_every_kind_of_answer(
    ask: dict[str, Any], uncertainty: float, stream: bool, models: ScriptedServer, tmp_path: Path
) -> None:
    """Two samples and a confidence in words score text, JSON and tool calls; callers see nothing of it."""
    models.script = pair(draft(WORDS), Reply("42"))
    with RunningGateway(config(models, tmp_path)) as gateway:
        before = len(models.requests)
        got = post(gateway.url, ASK | ask | {"stream": stream})
        assert got.headers["x-bpac-answered-by"] == "draft"
        assert float(got.headers["x-bpac-uncertainty"]) == pytest.approx(uncertainty)
        assert b"onfidence" not in got.body
        assert b"ikely" not in got.body
        assert b"41" in got.body
        # Two drafts, and one more question where the answer has no room for the confidence.
        assert len(models.requests) - before == 2 + bool(ask)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("path", "ask"),
    [("/v1/responses", {"input": "6 * 7?"}), ("/v1/messages", {"messages": ASK["messages"], "max_tokens": 100})],
)
def test_no_door_shows_a_stated_confidence(
    path: str, ask: dict[str, Any], stream: bool, models: ScriptedServer, tmp_path: Path
) -> None:
    """Callers of the Responses API and of the Messages API see the answer and nothing of what the score asked for."""
    models.script = pair(draft(WORDS), Reply("42"))
    with RunningGateway(config(models, tmp_path)) as gateway:
        got = post(gateway.url, {"model": "homework", "stream": stream, **ask}, path=path)
        assert (got.status, got.headers["x-bpac-answered-by"]) == (200, "draft")
        assert b"41" in got.body
        assert b"onfidence" not in got.body
        assert b"ikely" not in got.body


def test_a_game_goes_on_with_its_score_while_the_model_is_down(models: ScriptedServer, tmp_path: Path) -> None:
    """A restart and a reload at which the model does not answer change nothing."""
    kept = config(models, tmp_path)
    with RunningGateway(kept) as gateway:
        post(gateway.url, ASK)
    models.script = lambda request: Reply("gone", status=503)
    with RunningGateway(kept) as gateway:
        assert gateway.status()["score"] == LOGPROBS
        assert gateway.reload(kept)
        assert gateway.status()["score"] == LOGPROBS
        assert gateway.status()["steps"] == 1
    assert scores(tmp_path) == [LOGPROBS]


def test_a_score_that_is_not_possible_any_more_begins_a_new_game(
    models: ScriptedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A model that lost its log-probabilities gets another score and another game, and the log says so; one that gets
    them later keeps the score of its game.
    """
    kept = config(models, tmp_path)
    with RunningGateway(kept) as gateway:
        post(gateway.url, ASK)
    models.script = pair(draft(WORDS), Reply("42"))
    with caplog.at_level(logging.WARNING, "bpac.gateway"), RunningGateway(kept) as gateway:
        assert (gateway.status()["score"], gateway.status()["steps"]) == (WORDS, 0)
        assert changes(gateway) == (1, LOGPROBS)
        post(gateway.url, ASK)
    assert f"drafts cannot have the score {LOGPROBS} of game 1 any more" in caplog.text
    assert "a new game begins" in caplog.text
    both = draft(WORDS)
    models.script = pair(lambda request: replace(both(request), logprobs=True), Reply("42"))
    with RunningGateway(kept) as gateway:
        assert (gateway.status()["score"], gateway.status()["steps"]) == (WORDS, 1)
        assert changes(gateway) == (0, None)
        models.script = pair(draft(NEITHER), Reply("42"))
        assert gateway.reload(kept)
        assert changes(gateway) == (1, WORDS)
    assert scores(tmp_path) == [LOGPROBS, WORDS, NEITHER]


def test_one_answer_without_log_probabilities_changes_nothing(models: ScriptedServer, tmp_path: Path) -> None:
    """A server that forgets them once is not a server without them."""
    kept = config(models, tmp_path)
    with RunningGateway(kept) as gateway:
        post(gateway.url, ASK)
    first, usual = len(models.requests) + 1, draft(LOGPROBS)
    models.script = lambda request: replace(usual(request), logprobs=request.number != first)
    with RunningGateway(kept) as gateway:
        assert (gateway.status()["score"], gateway.status()["steps"]) == (LOGPROBS, 1)


def test_no_score_is_guessed(models: ScriptedServer, tmp_path: Path) -> None:
    """Without a game and without an answer of the model the gateway does not start, and a reload keeps the old one."""
    models.script = lambda request: Reply("gone", status=503)
    service = new_server(Config.read(config(models, tmp_path)))._gateway.service

    async def start() -> None:
        try:
            with pytest.raises(SettingsError, match=r"routes\.homework\.score: \"auto\" is chosen from an answer of"):
                await service.start()
        finally:
            service.store.close()

    asyncio.run(start())
    assert scores(tmp_path) == []
    with RunningGateway(config(models, tmp_path, score="entropy")) as gateway:
        assert not gateway.reload(config(models, tmp_path))
        assert gateway.status()["score"] == "entropy"


def test_a_model_that_is_asked_without_log_probabilities_gets_another_score(
    models: ScriptedServer, tmp_path: Path
) -> None:
    """Where the configuration drops logprobs, no score needs them, at the first start and at the next."""
    models.script = pair(draft(WORDS), Reply("42"))
    kept = config(models, tmp_path)
    kept["models"]["small"]["drop"] = ["logprobs", "top_logprobs"]
    for steps in (0, 1):
        with RunningGateway(kept) as gateway:
            assert (gateway.status()["score"], gateway.status()["steps"]) == (WORDS, steps)
            post(gateway.url, ASK)
    assert not any("logprobs" in request.body for request in models.requests)


def test_settings_of_a_score_need_its_name(models: ScriptedServer, tmp_path: Path) -> None:
    """Settings beside auto are refused: they are those of one score."""
    with pytest.raises(SettingsError, match='score "auto" has no settings'):
        Config.read(config(models, tmp_path, score={"name": "auto", "first_tokens": 5}))


def test_commands_use_the_score_of_the_game(
    models: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Doctor says which score is taken; warm, games and status know it once the gateway has run, and ask before."""
    file, table = tmp_path / "gateway.toml", tmp_path / "t.csv"
    file.write_text(to_toml(config(models, tmp_path, policy="portfolio")), encoding="utf-8")
    table.write_text("uncertainty,loss\n" + "0.1,0\n" * 200, encoding="utf-8")
    assert main(["warm", str(file), str(table)]) == 2
    assert "start the gateway once, or name a score" in capsys.readouterr().err
    main(["doctor", str(file)])
    assert f'route homework: score = "auto" takes {LOGPROBS}' in capsys.readouterr().out
    with RunningGateway(config(models, tmp_path, policy="portfolio")) as gateway:
        post(gateway.url, ASK)
    main(["doctor", str(file)])
    assert f"takes {LOGPROBS} (game 1 began with it)" in capsys.readouterr().out
    assert main(["warm", str(file), str(table), "--new-game"]) == 0
    assert main(["games", "list", str(file), "--json"]) == 0
    capsys.readouterr()
    assert main(["status", str(file)]) == 0
    assert f"score: {LOGPROBS}" in capsys.readouterr().out
    assert scores(tmp_path) == [LOGPROBS, LOGPROBS]


def test_all_processes_have_the_score_of_the_owner(models: ScriptedServer, tmp_path: Path) -> None:
    """Fronts read the file, which says auto; they score drafts as the owner has chosen."""
    models.script = pair(draft(WORDS), Reply("42"))
    crew = Crew(tmp_path, models.base_url, score="auto", policy="never")
    try:
        crew.start()
        got = [post(crew.url, ASK) for _ in range(6)]
        assert {round(float(one.headers["x-bpac-uncertainty"]), 6) for one in got} == {0.15}
        assert (crew.game()["score"], crew.game()["steps"]) == (WORDS, 6)
    finally:
        crew.close()


def test_gateways_that_share_a_game_agree_on_its_score(
    redis: RedisServer, models: ScriptedServer, tmp_path: Path
) -> None:
    """The second gateway takes the score of the game; of two that choose at once, both take the first choice."""
    address = redis.address(new_name())
    first, second = (Replica(tmp_path / name, models.base_url, address, score="auto") for name in ("a", "b"))
    try:
        first.start()
        models.script = lambda request: Reply("gone", status=503)
        second.start()
        assert (first.game()["game"], first.game()["score"]) == (second.game()["game"], second.game()["score"])
        assert second.game()["score"] == LOGPROBS
    finally:
        first.close()
        second.close()
    services = [
        SharedService(Config.read(settings(models.base_url, gateway={"store": redis.address("race")}, score="auto")))
        for _ in range(2)
    ]
    route = services[0].config.routes["homework"]
    agreed = [
        asyncio.run(one._agreed_score(route, None, score)) for one, score in zip(services, CANDIDATES, strict=False)
    ]
    assert agreed == [LOGPROBS, LOGPROBS]
    for service in services:
        service.store.close()


def test_the_terms_of_a_game_say_its_score_and_not_auto(models: ScriptedServer, tmp_path: Path) -> None:
    """A game that auto began goes on when the file names that score, and the other way round."""
    with RunningGateway(config(models, tmp_path)) as gateway:
        post(gateway.url, ASK)
    with RunningGateway(config(models, tmp_path, score=LOGPROBS)) as gateway:
        assert gateway.status()["steps"] == 1
        post(gateway.url, ASK)
    with RunningGateway(config(models, tmp_path)) as gateway:
        assert gateway.status()["steps"] == 2
    with closing(open_store(f"sqlite:///{tmp_path / 'bpac.db'}", read_only=True)) as store:
        (game,) = store.games()
        assert json.loads(game.terms)["score"] == {"kind": "MeanTokenProbability"}
