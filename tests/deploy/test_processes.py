"""The services of the compose file work together, run without containers."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts.grafana_panels import ROWS

from bpac.testing import Reply, ScriptedServer
from tests.deploy.compose_processes import GATEWAYS, ComposeProcesses
from tests.deploy.tools import DEPLOY, program
from tests.gateway.configured import get_json, wait_for

KEYS = {
    "BPAC_KEY": "caller",
    "BPAC_OPERATOR_KEY": "operator",
    "INSTRUCT_KEY": "none",
    "THINKING_KEY": "none",
    "REDIS_PASSWORD": "secret",
}
PAUSE = 0.3


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeProcesses]:
    """Redis, three gateways in front of scripted models, the load balancer and Prometheus."""
    directory = tmp_path_factory.mktemp("deployed")
    with ScriptedServer(Reply("one two three", pause=PAUSE)) as models:
        edits = {
            "http://instruct.example:8000/v1": models.base_url,
            "http://thinking.example:8000/v1": models.base_url,
            "scrape_interval: 15s": "scrape_interval: 1s",
        }
        with ComposeProcesses(directory, edits, KEYS) as running:
            running.start("redis")
            wait_for(lambda: _ping(running.ports["redis"]))
            for name in (*GATEWAYS, "loadbalancer", "prometheus"):
                running.start(name)
            wait_for(lambda: all(_answers(f"{running.url(name)}/readyz") for name in GATEWAYS), 60.0)
            wait_for(lambda: _balanced(running) == 3)
            wait_for(lambda: _replicas_up(running) == 3)
            yield running


def test_redis_keeps_what_it_acknowledged(services: ComposeProcesses) -> None:
    """The append-only file is on and nothing is ever evicted."""
    port = str(services.ports["redis"])
    told = subprocess.run(
        [program("redis-cli"), "-p", port, "config", "get", "append*", "maxmemory-policy"],
        env={"REDISCLI_AUTH": KEYS["REDIS_PASSWORD"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    found = dict(zip(told[::2], told[1::2], strict=True))
    assert found["appendonly"] == "yes"
    assert found["appendfsync"] == "everysec"
    assert found["maxmemory-policy"] == "noeviction"


def test_all_replicas_play_one_game(services: ComposeProcesses) -> None:
    """The load balancer uses every replica, each request is one round of one game, and all show the same."""
    before, answered, asked = max(_rounds(services)), _answered(services), 0
    while not all(after > once for once, after in zip(answered, _answered(services), strict=True)):
        assert asked < 60, "a replica is left out"
        assert _ask(services)["choices"][0]["message"]["content"] == "one two three"
        asked += 1
    wait_for(lambda: _rounds(services) == [before + asked] * 3)
    wait_for(lambda: [float(one["value"][1]) for one in _query(services, "sum(bpac_folding)")] == [1.0])


def test_commands_work_while_the_game_is_played(services: ComposeProcesses, tmp_path: Path) -> None:
    """``bpac games list`` and ``bpac status`` show what the replicas show, and old entries can be archived."""
    (game,) = json.loads(services.bpac("games", "list"))["games"]
    assert (game["route"], game["state"]) == ("chat", "warming_up")
    wait_for(lambda: json.loads(services.bpac("games", "list"))["games"][0]["rounds"] == max(_rounds(services)))
    (status,) = json.loads(services.bpac("status"))["games"]
    assert status["steps"] == max(_rounds(services))
    # The gateways archive by themselves; by hand it works as well while they use the store. There is too little yet.
    (shown,) = get_json(f"{services.url('gateway-1')}/v1/status", KEYS["BPAC_OPERATOR_KEY"])["routes"]["chat"]
    assert shown["shared"]["archive"]["error"] is None
    assert json.loads(services.bpac("archive", "--out", str(tmp_path))) == {"archives": []}


def test_streams_are_not_buffered(services: ComposeProcesses) -> None:
    """Events arrive when the model sends them, not together at the end."""
    body = {**ASK, "stream": True}
    arrived = []
    with urllib.request.urlopen(_request(services, body), timeout=60) as response:
        for line in response:
            if line.startswith(b"data: {"):
                arrived.append(time.monotonic())
    assert arrived[-1] - arrived[0] > PAUSE


def test_metrics_are_not_served_to_callers(services: ComposeProcesses) -> None:
    """Through the load balancer they would be those of a random replica."""
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get_json(f"{services.url('loadbalancer')}/metrics")


def test_prometheus_reads_every_replica_and_knows_the_alerts(services: ComposeProcesses) -> None:
    """Its targets are up, with the operator's key, and no alert fires for a gateway that works."""
    targets = get_json(f"{services.url('prometheus')}/api/v1/targets")["data"]["activeTargets"]
    assert Counter(target["labels"]["job"] for target in targets) == {"bpac": 3, "loadbalancer": 1}
    assert {target["health"] for target in targets} == {"up"}, targets
    groups = get_json(f"{services.url('prometheus')}/api/v1/rules")["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 15
    assert {rule["name"] for rule in rules if rule["state"] == "firing"} == set()


def test_every_query_of_the_dashboard_can_be_evaluated(services: ComposeProcesses) -> None:
    """Prometheus accepts each of them, and those about the service have values."""
    for row, panels in ROWS.items():
        for panel in panels:
            for query in panel.lines.values():
                found = _query(services, query.replace("$route", ".*").replace("$segment", ".*"))
                shared = any(f"bpac_{name}" in query for name in ("unfolded_rounds", "replicas", "folding"))
                assert found or not (row == "At a glance" or shared), query


def test_the_health_check_of_the_image_knows_whether_a_gateway_is_ready(services: ComposeProcesses) -> None:
    """The command in the container file succeeds beside a gateway, and fails where none listens."""
    text = (DEPLOY / "Containerfile").read_text().partition("HEALTHCHECK")[2]
    (words,) = re.findall(r"CMD (\[.*\])$", text.partition("ENTRYPOINT")[0], re.MULTILINE)
    _, option, program_ = json.loads(words)
    for port, code in ((services.ports[GATEWAYS[1]], 0), (1, 1)):
        check = [sys.executable, option, program_.replace("8800", str(port))]
        proxy = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}
        assert subprocess.run(check, env=proxy, capture_output=True, check=False).returncode == code


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_replica_that_ends_is_replaced_by_the_others(services: ComposeProcesses, how: signal.Signals) -> None:
    """Callers notice nothing: a request whose connection is refused goes to another replica."""
    name = GATEWAYS[0]
    services.processes[name].send_signal(how)
    services.processes[name].wait(60.0)
    for _ in range(6):
        assert _ask(services)["choices"][0]["message"]["content"] == "one two three"
    services.start(name)
    wait_for(lambda: _balanced(services) == 3)
    assert _answers(f"http://127.0.0.1:{services.health_port}/healthz")


ASK: dict[str, Any] = {"model": "chat", "messages": [{"role": "user", "content": "Count."}]}


def _request(services: ComposeProcesses, body: dict[str, Any]) -> urllib.request.Request:
    return urllib.request.Request(
        f"{services.url('loadbalancer')}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": f"Bearer {KEYS['BPAC_KEY']}"},
    )


def _ask(services: ComposeProcesses) -> Any:
    with urllib.request.urlopen(_request(services, ASK), timeout=60) as response:
        return json.load(response)


def _rounds(services: ComposeProcesses) -> list[int]:
    """How many rounds the game has, as each replica says."""
    return [
        sum(game["steps"] for game in json.loads(_operator(services, name, "/v1/status"))["routes"]["chat"])
        for name in GATEWAYS
    ]


def _answered(services: ComposeProcesses) -> list[float]:
    """How many requests each replica has answered itself."""
    pages = (_operator(services, name, "/metrics") for name in GATEWAYS)
    return [sum(map(float, re.findall(r"^bpac_answers_total{.*} (\S+)", page, re.MULTILINE))) for page in pages]


def _operator(services: ComposeProcesses, name: str, path: str) -> str:
    """What a replica tells its operator."""
    headers = {"authorization": f"Bearer {KEYS['BPAC_OPERATOR_KEY']}"}
    with urllib.request.urlopen(urllib.request.Request(f"{services.url(name)}{path}", headers=headers)) as response:
        text: str = response.read().decode()
        return text


def _query(services: ComposeProcesses, query: str) -> list[Any]:
    words = urllib.parse.urlencode({"query": query})
    answer = get_json(f"{services.url('prometheus')}/api/v1/query?{words}")
    assert answer["status"] == "success", query
    found: list[Any] = answer["data"]["result"]
    return found


def _replicas_up(services: ComposeProcesses) -> int:
    try:
        found = _query(services, 'sum(up{job="bpac"})')
    except OSError:
        return 0
    return int(found[0]["value"][1]) if found else 0


def _balanced(services: ComposeProcesses) -> int:
    """How many replicas the load balancer uses."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{services.health_port}/metrics", timeout=60) as response:
            text = response.read().decode()
    except OSError:
        return 0
    found = re.search(r'^haproxy_backend_active_servers{proxy="gateways"} (\d+)', text, re.MULTILINE)
    return int(found[1]) if found else 0


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=60).close()
    except OSError:
        return False
    return True


def _ping(port: int) -> bool:
    """Whether Redis answers; without the password it must not."""
    command = [program("redis-cli"), "-p", str(port), "ping"]
    done = subprocess.run(command, env={"REDISCLI_AUTH": KEYS["REDIS_PASSWORD"]}, capture_output=True, check=False)
    if done.stdout.strip() != b"PONG":
        return False
    assert b"NOAUTH" in subprocess.run(command, env={}, capture_output=True, check=False).stdout
    return True
