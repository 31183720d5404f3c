"""Several processes are one gateway: whatever front answers, there is one game, one budget, one picture."""

import json
import os
import resource
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import msgspec
import psutil  # type: ignore[import-untyped]
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import ALL_ROLES, bearer, settings, wait_for
from tests.gateway.operations.asking import post
from tests.gateway.serving import to_toml
from tests.gateway.workers.crew import Crew

KEY, POOR, SLOW = "ops-key", "poor-key", "slow-key"
BUDGET = 7


def script(request: Request) -> Reply:
    """Models that agree, surely; one route's draft is refused."""
    if request.body["model"] == "refusing":
        return Reply(status=400)
    if request.body["model"] == "slow":
        return Reply("42", delay=1.0)
    return Reply("42", probability=0.9)


def configuration(base_url: str, port: int, store: str) -> str:
    """A gateway with keys and one route of each kind."""
    found = settings(base_url)
    ours = found["models"]["small"]
    names = {"small": "draft", "middle": "middle", "large": "expert", "broken": "refusing", "slow": "slow"}
    found["models"] = {name: {**ours, "model": model} for name, model in names.items()}
    pair = {"draft": "small", "expert": "large", "epsilon": 0.2}
    found["routes"] = {
        "homework": pair,
        "counted": pair,
        "streamed": {**pair, "score": {"name": "mean_token_probability", "first_tokens": 1}},
        "chain": {"models": ["small", "middle", "large"], "epsilon": 0.2, "call_prices": [1, 4, 20]},
        "tenants": {**pair, "loss": "external", "segment_by": "header:x-tenant"},
        "broken": {**pair, "draft": "broken"},
        "slow": {**pair, "draft": "slow"},
    }
    found["gateway"] |= {"listen": f"127.0.0.1:{port}", "store": store}
    text = to_toml(found)
    for name, key, more in (
        ("ops", KEY, ""),
        ("poor", POOR, f"requests_per_day = {BUDGET}\n"),
        ("slow", SLOW, f"requests_per_minute = {BUDGET}\n"),
    ):
        roles = ALL_ROLES if name == "ops" else ["call"]
        text += f'[[gateway.keys]]\nname = "{name}"\nkey = "{key}"\nroles = {json.dumps(roles)}\n{more}'
    return text


class KeyedCrew(Crew):
    """A crew whose pages need a key."""

    def page(self, path: str) -> Any:
        """What an endpoint returns."""
        request = urllib.request.Request(f"{self.url}{path}", headers=bearer(KEY))
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read().decode()

    def status(self) -> Any:
        """The whole status."""
        return json.loads(self.page("/v1/status"))

    def workers(self) -> dict[str, Any]:
        """What the status says about the processes."""
        found: dict[str, Any] = self.status()["workers"]
        return found

    def ask(self, route: str, key: str = KEY, headers: dict[str, str] | None = None, **more: Any) -> Any:
        """Status, headers and body of a chat, on a connection of its own."""
        body = {"model": route, "messages": [{"role": "user", "content": "6 * 7?"}], **more}
        return post(f"{self.url}/v1/chat/completions", body, bearer(key) | (headers or {}))

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all series with these labels."""
        families = text_string_to_metric_families(self.page("/metrics"))
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedCrew]:
    """One gateway with two fronts for all tests of this file."""
    directory = tmp_path_factory.mktemp("crew")
    with ScriptedServer(script) as models:
        gateway = KeyedCrew(directory, models.base_url)
        gateway.config.write_text(configuration(models.base_url, gateway.port, gateway.store))
        try:
            gateway.start()
            yield gateway
        finally:
            gateway.close()


def in_parallel(crew: KeyedCrew, route: str, count: int, **options: Any) -> list[Any]:
    """Chats on many connections at once, so that both fronts get some."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda _: crew.ask(route, **options), range(count)))


def game_of(crew: KeyedCrew, route: str) -> Any:
    """The status of the one game of a route."""
    (game,) = crew.status()["routes"][route]
    return game


def test_every_door_is_open_at_every_front(crew: KeyedCrew) -> None:
    """Requests in any API are rounds of one game, and have the errors of their API."""
    question = [{"role": "user", "content": "6 * 7?"}]
    bodies: Any = {
        "/v1/responses": {"input": "6 * 7?"},
        "/v1/messages": {"max_tokens": 9, "messages": question},
        "/v1/messages/count_tokens": {"messages": question},
    }
    before = game_of(crew, "homework")["steps"]
    for path, body in list(bodies.items()) * 4:
        for stream in (False, True):
            status, headers, _ = post(f"{crew.url}{path}", {"model": "homework", **body, "stream": stream}, bearer(KEY))
            assert status == 200
            assert ("x-bpac-decision" in headers) is not path.endswith("count_tokens")
    wait_for(lambda: game_of(crew, "homework")["steps"] == before + 16)
    status, _, got = post(f"{crew.url}/v1/messages", {"model": "nothing", **bodies["/v1/messages"]}, {"x-api-key": KEY})
    assert (status, got["error"]["type"]) == (404, "not_found_error")
    assert post(f"{crew.url}/v1/responses/resp_1/cancel", {}, bearer(KEY))[2]["error"]["code"] == "not_kept"


def test_all_fronts_decide_in_one_game(crew: KeyedCrew) -> None:
    """Steps are numbered without gaps or repetitions, every audit is graded, and the counters sum to the journal."""
    got = in_parallel(crew, "counted", 60)
    assert {status for status, _, _ in got} == {200}
    steps = sorted(int(headers["x-bpac-decision"].split("-")[2]) for _, headers, _ in got)
    assert steps == list(range(1, 61))
    wait_for(lambda: game_of(crew, "counted")["owed"] == 0)
    assert game_of(crew, "counted")["steps"] == 60
    assert game_of(crew, "counted")["forfeits"] == {}
    # The fronts report once a second.
    wait_for(lambda: crew.metric("bpac_answers_total", route="counted") == 60)
    assert crew.metric("bpac_rounds_total", route="counted") == 60
    for stage in ("draft", "owner"):
        assert crew.metric("bpac_seconds_count", route="counted", stage=stage) == 60
    answered = [headers["x-bpac-answered-by"] for _, headers, _ in got]
    assert crew.metric("bpac_answers_total", route="counted", answered_by="expert") == answered.count("expert")


def test_streams_are_decided_by_the_owner(crew: KeyedCrew) -> None:
    """Whole drafts and drafts that are scored by their first token, as streams."""
    for route in ("homework", "streamed"):
        status, headers, text = crew.ask(route, stream=True)
        assert status == 200
        assert headers["x-bpac-decision"].startswith("dec-")
        assert "42" in text
        assert text.rstrip().endswith("data: [DONE]")
    wait_for(lambda: game_of(crew, "streamed")["owed"] == 0)
    assert game_of(crew, "streamed")["forfeits"] == {}


def test_cascades_walk_in_the_front_and_are_decided_by_the_owner(crew: KeyedCrew) -> None:
    """Audits ask all models; what they find is recorded in the one journal."""
    got = in_parallel(crew, "chain", 12)
    assert {status for status, _, _ in got} == {200}
    assert {headers["x-bpac-model"] for _, headers, _ in got} <= {"small", "middle", "large"}
    wait_for(lambda: game_of(crew, "chain")["owed"] == 0)
    game = game_of(crew, "chain")
    assert (game["steps"], game["forfeits"]) == (12, {})


def test_segments_and_feedback_reach_the_right_game(crew: KeyedCrew) -> None:
    """A segment has one game, whichever front its requests come to; feedback from outside is accepted once."""
    decisions = {}
    for tenant in ("a", "b"):
        for status, headers, _ in in_parallel(crew, "tenants", 6, headers={"x-tenant": tenant}):
            assert status == 200
            decisions[headers["x-bpac-decision"]] = tenant
    games = {game["segment"]: game for game in crew.status()["routes"]["tenants"]}
    assert {segment: game["steps"] for segment, game in games.items()} == {"a": 6, "b": 6}
    decision = next(iter(decisions))
    wait_for(lambda: crew.page(f"/v1/decisions/{decision}") == '{"draft":"42","expert":"42"}')
    report = {"decision": decision, "loss": 0.0}
    assert post(f"{crew.url}/v1/feedback", report, bearer(KEY))[0] == 200
    assert post(f"{crew.url}/v1/feedback", report, bearer(KEY))[0] == 409


def test_a_budget_holds_over_all_fronts(crew: KeyedCrew) -> None:
    """Of many requests at once exactly as many are answered as the key may send."""
    statuses = sorted(status for status, _, _ in in_parallel(crew, "homework", 3 * BUDGET, key=POOR))
    assert statuses == [200] * BUDGET + [429] * 2 * BUDGET
    assert crew.status()["budgets"]["poor"]["requests"] == BUDGET
    wait_for(lambda: crew.metric("bpac_http_refused_total", reason="insufficient_quota") == 2 * BUDGET)


def test_a_rate_limit_holds_over_all_fronts(crew: KeyedCrew) -> None:
    """The same per minute; the error has its headers whichever process refused it."""
    replies = in_parallel(crew, "homework", 3 * BUDGET, key=SLOW)
    assert sorted(status for status, _, _ in replies) == [200] * BUDGET + [429] * 2 * BUDGET
    refused = next(headers for status, headers, _ in replies if status == 429)
    assert refused["x-ratelimit-limit-requests"] == str(BUDGET)
    assert refused["x-ratelimit-reset-requests"] == f"{refused['retry-after']}s"
    assert crew.status()["budgets"]["slow"]["last_minute"]["requests"] == BUDGET
    wait_for(lambda: crew.metric("bpac_http_refused_total", reason="rate_limit_exceeded") == 2 * BUDGET)


def test_failures_seen_by_fronts_are_in_the_one_picture(crew: KeyedCrew) -> None:
    """A draft model that refuses: counted, in the status of the model and of the game, and on the dashboard."""
    for status, headers, _ in in_parallel(crew, "broken", 25):
        assert (status, headers["x-bpac-unscored"]) == (200, "draft-refused")
    wait_for(lambda: crew.metric("bpac_unscored_total", route="broken", reason="draft-refused") == 25)
    assert crew.metric("bpac_upstream_failures_total", model="broken") == 25
    assert crew.status()["models"]["broken"]["health"]["ok"] is False
    assert game_of(crew, "broken")["state"] == "not_routing"
    data = json.loads(crew.page("/dashboard/data"))
    assert any("broken" in trouble["what"] for trouble in data["troubles"])
    assert "no score: the expert answers instead of the draft" in crew.log_lines()


def test_other_pages_come_through_every_front(crew: KeyedCrew) -> None:
    """Models, health, readiness and errors are those of one process."""
    for _ in range(4):
        assert len(json.loads(crew.page("/v1/models"))["data"]) == 7
        assert json.loads(crew.page("/readyz"))["status"] == "ready"
        assert json.loads(crew.page("/healthz")) == {"status": "ok"}
    assert post(f"{crew.url}/v1/chat/completions", {}, bearer("wrong"))[0] == 401
    assert post(f"{crew.url}/v1/feedback", {"decision": "dec-1-1-x", "loss": 0}, bearer(KEY))[0] == 404
    workers = crew.workers()
    assert (workers["wanted"], len(workers["fronts"])) == (2, 2)


def test_a_front_that_is_stopped_holds_nobody_up(crew: KeyedCrew) -> None:
    """SIGSTOP: the other front answers; when it continues, its requests are answered, too."""
    crew.signal("front 0", signal.SIGSTOP)
    try:
        got = [crew.ask("homework") for _ in range(5)]
        assert {status for status, _, _ in got} == {200}
    finally:
        os.kill(crew.pid("front 0"), signal.SIGCONT)
    assert {status for status, _, _ in in_parallel(crew, "homework", 10)} == {200}


def test_requests_wait_for_an_owner_that_is_stopped(crew: KeyedCrew) -> None:
    """SIGSTOP for a second: nothing is refused, and every round is counted once."""
    before, owner = game_of(crew, "homework")["steps"], crew.pid("owner")
    os.kill(owner, signal.SIGSTOP)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(crew.ask, "homework") for _ in range(16)]
        time.sleep(1.0)
        os.kill(owner, signal.SIGCONT)
        assert {each.result()[0] for each in asked} == {200}
    assert game_of(crew, "homework")["steps"] == before + 16


BAD_FRAMES = {
    "no frame": b"\xff" * 64,
    "no MessagePack": (5).to_bytes(4, "big") + b"\xc1\xc1\xc1\xc1\xc1",
    "no list of messages": msgspec.msgpack.encode({"a": 1}),
    "unknown kind": msgspec.msgpack.encode([["shutdown", 1]]),
    "not a question": msgspec.msgpack.encode([[]]),
    "wrong values": msgspec.msgpack.encode([["decide", 1, 1, "ticket", None, 7, []]]),
    "values that are missing": msgspec.msgpack.encode([["arrive", 1]]),
}


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_a_bad_message_ends_its_connection_and_nothing_else(crew: KeyedCrew, frame: bytes) -> None:
    """The owner closes that connection, counts it, and goes on with the fronts."""
    (told,) = [word for word in psutil.Process(crew.pid("owner")).cmdline() if word.startswith("{")]
    faults, before = crew.metric("bpac_worker_faults_total"), crew.pids()
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(10.0)
        link.connect(json.loads(told)["directory"] + "/desk.sock")
        link.sendall(frame if frame[:1] in b"\xff\x00" else len(frame).to_bytes(4, "big") + frame)
        assert link.recv(1000) == b""
    wait_for(lambda: crew.metric("bpac_worker_faults_total") == faults + 1)
    assert crew.ask("homework")[0] == 200
    assert crew.pids() == before


def test_fronts_that_can_open_no_more_files_go_on_when_they_can(crew: KeyedCrew) -> None:
    """Connections wait meanwhile, the log says why, and nothing ends."""
    before = crew.pids()
    fronts = [pid for name, pid in before.items() if name != "owner"]
    limits = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in fronts}
    with ExitStack() as opened:
        for pid in fronts:
            few = psutil.Process(pid).num_fds() + 2
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (few, limits[pid][1]))
            opened.callback(resource.prlimit, pid, resource.RLIMIT_NOFILE, limits[pid])
        for _ in range(20):
            opened.enter_context(socket.create_connection(("127.0.0.1", crew.port)))
        wait_for(lambda: "no connection can be accepted" in crew.log_lines())
    assert {status for status, _, _ in in_parallel(crew, "homework", 10)} == {200}
    assert crew.pids() == before


def test_a_lost_front_cuts_off_what_is_under_way_in_its_games(crew: KeyedCrew) -> None:
    """One request is charged like in a crash; those of other fronts go to the expert, and are no rounds."""
    before = game_of(crew, "slow")["steps"]
    with ThreadPoolExecutor(64) as pool:
        asked = []
        while min(front["drafting"] for front in crew.workers()["fronts"]) == 0:
            asked.append(pool.submit(_tried, crew, "slow"))
        crew.signal("front 0", signal.SIGKILL)
        got = [each.result() for each in asked]
    cut_off = [headers for status, headers in got if status == 200 and headers["x-bpac-decision"] == "unscored"]
    assert 0 < len(cut_off) < len(got)
    assert {headers["x-bpac-unscored"] for headers in cut_off} == {"outage"}
    assert {headers["x-bpac-answered-by"] for headers in cut_off} == {"expert"}
    decided = sum(status == 200 for status, _ in got) - len(cut_off)
    assert game_of(crew, "slow")["steps"] == before + decided
    assert "requests under way are cut off: they go to the expert, and one is charged as loss 1" in crew.log_lines()
    wait_for(crew.complete)
    assert crew.metric("bpac_workers_lost_total", process="front") >= 1
    assert crew.ask("slow")[1]["x-bpac-decision"].split("-")[2] == str(before + decided + 1)


def _tried(crew: KeyedCrew, route: str) -> tuple[int, dict[str, str]]:
    """Status and headers of a chat; status 0 if its connection broke."""
    try:
        status, headers, _ = crew.ask(route)
    except OSError:
        return 0, {}
    return status, headers
