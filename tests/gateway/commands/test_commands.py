"""The commands status, export and audit, and the metrics, after some rounds of a gateway."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bpac.errors import InputError
from bpac.replay.tables.reading import read_table
from bpac.routing.journal.entry_lines import read_journal
from bpac.routing.router import Router
from bpac.testing import ScriptedServer
from tests.gateway.configured import settings
from tests.gateway.law import KnownPair, Question
from tests.gateway.raw import post
from tests.gateway.running import RunningGateway
from tests.gateway.serving import main, to_toml
from tests.ports import free_port

ROUNDS = 120


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a configuration, a store with some rounds, and the status that the gateway reported."""
    directory = tmp_path_factory.mktemp("gateway")
    store = f"sqlite:///{directory / 'bpac.db'}"
    with ScriptedServer(KnownPair()) as models:
        data = settings(models.base_url, gateway={"store": store, "snapshot_every": 50}, epsilon=0.4)
        (directory / "gateway.toml").write_text(to_toml(data))
        with RunningGateway(data) as gateway:
            for number in range(ROUNDS):
                post(gateway.url, Question(number).body)
            gateway.idle()
            (directory / "status.json").write_text(json.dumps(gateway.status()))
            page = post(gateway.url, b"", "/metrics", method="GET")
            (directory / "metrics.txt").write_bytes(page.body)
    return directory


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command printed."""
    assert main(list(arguments)) == code
    return capsys.readouterr().out


def test_status_prints_what_the_gateway_reports(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The status from the store is the status of the gateway, whether it runs or not."""
    (game,) = json.loads(said(capsys, "status", str(place / "gateway.toml"), "--json"))["games"]
    assert game == json.loads((place / "status.json").read_text()) | {"route": "homework"}
    assert f"homework: {ROUNDS} rounds" in said(capsys, "status", str(place / "gateway.toml"))


def test_status_says_that_a_reload_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The running gateway does not use the file as it is: an operator who changed it is told."""
    gateway = {"store": f"sqlite:///{tmp_path}/bpac.db", "listen": f"127.0.0.1:{free_port()}"}
    data = settings("http://127.0.0.1:9/v1", gateway=gateway)
    (tmp_path / "gateway.toml").write_text(to_toml(data))
    with RunningGateway(data) as running:
        assert not running.reload(settings("http://127.0.0.1:9/v1", gateway=gateway, epsilon=2.0))
        found = said(capsys, "status", str(tmp_path / "gateway.toml"))
        assert "CONFIGURATION: not reloaded, the old one stays in use: routes.homework.epsilon" in found


def test_status_of_a_game_without_a_decision_names_no_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gateway that has only been started has lost and saved nothing, and has shown nothing either."""
    data = settings("http://127.0.0.1:9/v1", gateway={"store": f"sqlite:///{tmp_path}/bpac.db"})
    (tmp_path / "gateway.toml").write_text(to_toml(data))
    with RunningGateway(data):
        pass
    printed = said(capsys, "status", str(tmp_path / "gateway.toml"))
    first, score = printed.splitlines()
    assert first == "homework: no request decided yet, warming up, threshold 0"
    assert score == "  score: mean_token_probability"


def test_an_audit_recomputes_an_export(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every threshold and certificate follows from the journal alone, and is as recorded."""
    journal = place / "journal.jsonl"
    said(capsys, "export", str(place / "gateway.toml"), "--out", str(journal))
    report = json.loads(said(capsys, "audit", str(journal), "--json"))
    status = json.loads((place / "status.json").read_text())
    assert (report["rounds"], report["differences"]) == (ROUNDS, [])
    assert report["claims"] >= 3
    assert report["threshold"] == status["threshold"]
    assert report["certificate"]["upper"] == status["certificate"]["upper"]
    assert "no differences" in said(capsys, "audit", str(journal))


def test_the_library_rebuilds_the_router_of_an_export(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The router that is rebuilt from an export, with its claims, has the state that the gateway reported."""
    journal = place / "for_library.jsonl"
    said(capsys, "export", str(place / "gateway.toml"), "--out", str(journal))
    assert '"entry":"claim"' in journal.read_text()
    with journal.open(encoding="utf-8") as file:
        router = Router.rebuild(read_journal(file))
    status = json.loads((place / "status.json").read_text())
    folded = json.loads(json.dumps(router.summary().to_json()))
    assert {name: status[name] for name in folded} == folded
    assert folded["steps"] == ROUNDS


def _edited(lines: list[str], kind: str, number: int, **changes: Any) -> list[str]:
    """The journal with another value in the given entry of a kind."""
    places = [at for at, line in enumerate(lines) if json.loads(line)["entry"] == kind]
    at = places[number]
    edited = json.dumps(json.loads(lines[at]) | changes, separators=(",", ":"))
    return [*lines[:at], edited, *lines[at + 1 :]]


def test_tampering_is_detected(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A changed threshold, loss, coin, setting or claim, and a missing line, are each reported with their line."""
    lines = said(capsys, "export", str(place / "gateway.toml")).splitlines()
    resolved = [json.loads(line) for line in lines if '"resolved"' in line]
    lost = next(at for at, entry in enumerate(resolved) if entry["loss"] == 1.0)
    forgeries = {
        "threshold": _edited(lines, "decided", 60, threshold=0.999),
        "loss": _edited(lines, "resolved", lost, loss=0.0),
        "epsilon": [lines[0], lines[1].replace('"epsilon":0.4', '"epsilon":0.5'), *lines[2:]],
        "claim": _edited(lines, "claim", -1, threshold=0.999),
        "certificate": _edited(lines, "claim", -1, certificate={"upper": 0.0}),
        "missing": [*lines[:40], *lines[41:]],
        "torn": [*lines[:-1], lines[-1][:20]],
    }
    for name, forged in forgeries.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(forged) + "\n")
        report = json.loads(said(capsys, "audit", str(path), "--json", code=1))
        assert report["differences"], name
    assert "line" in said(capsys, "audit", str(tmp_path / "threshold.jsonl"), code=1)


def test_a_table_is_a_sample_of_the_traffic(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every request is equally likely to be in it; with --all-audits it has all graded rounds with propensities."""
    path = place / "table.csv"
    said(capsys, "export", str(place / "gateway.toml"), "--format", "table", "--out", str(path))
    table = read_table(path)
    status = json.loads((place / "status.json").read_text())
    assert 0 < len(table) < status["expert_calls"]
    assert table.expert_tokens is not None
    everything = said(capsys, "export", str(place / "gateway.toml"), "--format", "table", "--all-audits").splitlines()
    assert len(everything) == 1 + status["expert_calls"]
    assert "propensity" in everything[0]


def test_an_export_names_what_is_missing(place: Path, tmp_path: Path) -> None:
    """A route, a journal or rounds that do not exist are errors that say so."""
    with pytest.raises(InputError, match="there are 1: homework"):
        main(["export", str(place / "gateway.toml"), "--route", "law"])
    with pytest.raises(InputError, match="cannot be read"):
        main(["audit", str(tmp_path / "missing.jsonl")])


def test_metrics_are_in_the_format_of_prometheus(place: Path) -> None:
    """Rounds, expert calls, threshold, certificate, tokens and durations, as Prometheus' own parser reads them."""
    families = {family.name: family for family in text_string_to_metric_families((place / "metrics.txt").read_text())}
    status = json.loads((place / "status.json").read_text())
    assert families["bpac_rounds"].samples[0].value == ROUNDS
    assert families["bpac_threshold"].samples[0].value == pytest.approx(status["threshold"])
    stages = {sample.labels["stage"] for sample in families["bpac_seconds"].samples}
    assert stages == {"draft", "journal", "expert", "grading"}
    answers = sum(sample.value for sample in families["bpac_answers"].samples if sample.name.endswith("_total"))
    assert answers == ROUNDS
    assert {"bpac_expert_calls", "bpac_open_rounds", "bpac_certificate_average_upper", "bpac_tokens_saved"} <= set(
        families
    )
