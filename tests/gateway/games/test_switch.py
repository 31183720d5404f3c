"""A route without a score: may the new model replace the old one? In a running gateway, and on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from bpac.cli import program
from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.testing import Reply, Request, Script, ScriptedServer
from tests.gateway.configured import settings, wait_for
from tests.gateway.raw import post
from tests.gateway.running import ASK, Running, RunningGateway
from tests.gateway.serving import main, to_toml

SWITCH: dict[str, Any] = {"score": "none", "epsilon": 0.2}


def losing(every: int) -> Script:
    """Models that disagree in one of so many requests; the new one sends no log-probabilities, and is not asked to."""
    count = [0]

    def script(request: Request) -> Reply:
        if request.body["model"] == "expert":
            return Reply("the answer is 42")
        assert "logprobs" not in request.body
        count[0] += 1
        wrong = every and count[0] % every == 0
        return Reply(f"{count[0]} tries: the answer is {41 if wrong else 42}")

    return script


def verdict(capsys: pytest.CaptureFixture[str], config: Path, code: int) -> dict[str, Any]:
    """What the command says as JSON, with its exit code."""
    assert main(["switch", str(config), "homework", "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_every_answer_from_a_running_and_a_stopped_gateway(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not yet, then yes, and with other models not yet again; the command agrees with the status at every point."""
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "snapshot_every": 7}
    config = tmp_path / "gateway.toml"
    with ScriptedServer(losing(25)) as models:
        data = settings(models.base_url, gateway=store, **SWITCH)
        config.write_text(to_toml(data))
        with RunningGateway(data) as gateway:
            first = verdict(capsys, config, 1)
            assert (first["answer"], first["games"][0]["rounds"]) == ("not_yet", 0)
            post(gateway.url, ASK)
            gateway.idle()
            got = post(gateway.url, ASK)
            assert (got.headers["x-bpac-uncertainty"], got.headers["x-bpac-answered-by"]) == ("0.0", "expert")
            for _ in range(60):
                post(gateway.url, ASK)
            wait_for(lambda: post(gateway.url, ASK).headers["x-bpac-threshold"] == "1.0")
            gateway.idle()
            # Different drafts with one score would be a trouble on any other route.
            assert gateway.status()["troubles"] == []
            found, running = gateway.status()["switch"], verdict(capsys, config, 0)
            assert found["answer"] == running["answer"] == "yes"
            assert {name: running["games"][0][name] for name in found} == found
            assert "bpac_switch_answer" in post(gateway.url, b"", "/metrics", method="GET").body.decode()
        assert verdict(capsys, config, 0) == running
        assert main(["switch", str(config), "homework"]) == 0
        assert capsys.readouterr().out.startswith("homework: yes: its average loss is at most 2")
        assert main(["status", str(config)]) == 0
        assert "may the new model replace the old one? yes" in capsys.readouterr().out
        # The gateway has not seen a request with the new terms: what the old ones proved is no answer.
        config.write_text(to_toml(settings(models.base_url, gateway=store, **{**SWITCH, "epsilon": 0.1})))
        assert verdict(capsys, config, 1)["answer"] == "not_yet"


def test_a_model_that_loses_too_much_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No, with the loss; drafts that the new model does not send are counted beside it."""
    config = tmp_path / "gateway.toml"
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}"}
    broken: list[bool] = []

    def script(request: Request) -> Reply:
        if broken and request.body["model"] == "draft":
            return Reply(status=400)
        return losing(1)(request)

    with ScriptedServer(script) as models:
        data = settings(models.base_url, gateway=store, **SWITCH)
        config.write_text(to_toml(data))
        with RunningGateway(data) as gateway:
            for _ in range(8):
                post(gateway.url, ASK)
            broken.append(True)
            post(gateway.url, ASK)
            gateway.idle()
    found = verdict(capsys, config, 1)
    (game,) = found["games"]
    assert found["answer"] == game["answer"] == "no"
    assert game["at_least"] > game["allowed"]
    assert game["without_draft"]["requests"] == 1
    assert main(["switch", str(config), "homework"]) == 1
    out = capsys.readouterr().out
    assert "homework: no: its average loss is at least" in out
    assert "requests that the new model did not answer: 11.1% (1 draft-refused)" in out


def test_a_request_without_a_score_is_the_first_after_an_alarm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its ticket is withdrawn before any is decided in the new epoch; the evidence goes on behind it, also restored."""
    config, every = tmp_path / "gateway.toml", [0]
    store = {"store": f"sqlite:///{tmp_path / 'bpac.db'}", "snapshot_every": 1000}

    def script(request: Request) -> Reply:
        return losing(every[0])(request)

    with ScriptedServer(script) as models:
        data = settings(models.base_url, gateway=store, **SWITCH)
        config.write_text(to_toml(data))
        with RunningGateway(data) as gateway:
            wait_for(lambda: post(gateway.url, ASK).headers["x-bpac-threshold"] == "1.0")
            every[0] = 1
            while gateway.status()["epoch"] == 1:
                post(gateway.url, ASK)
                gateway.idle()
            assert post(gateway.url, ASK | {"n": 2}).headers["x-bpac-decision"] == "unscored"
            for _ in range(20):
                post(gateway.url, ASK)
            gateway.idle()
            found = gateway.status()["switch"]
            assert (found["answer"], found["audits"], found["epoch"]) == ("no", 20, 2)
            assert verdict(capsys, config, 1)["games"][0].items() >= found.items()


def test_drafts_that_cannot_be_right_are_losses_and_not_passed_over() -> None:
    """Whoever replaces a model gets its empty answers, too: they are graded like all others, whole and streamed."""
    with Running(losing(0), **SWITCH) as (gateway, models):
        models.script = lambda request: Reply("" if request.body["model"] == "draft" else "42")
        for stream in (False, True):
            got = post(gateway.url, {**ASK, "stream": stream})
            assert got.headers["x-bpac-uncertainty"] == "0.0"
        gateway.idle()
        found = gateway.status()["switch"]
        assert (found["rounds"], found["audits"] + found["unknown"]) == (2, 2)
        assert found["estimate"] in (None, 1.0)


def test_a_stream_begins_with_the_first_token_of_the_draft() -> None:
    """Once everything is certified, callers need not wait for the whole draft, and rounds are graded all the same."""
    with Running(losing(0), **{**SWITCH, "epsilon": 0.4}) as (gateway, _):
        for _ in range(30):
            post(gateway.url, {**ASK, "stream": True})
            gateway.idle()
        got = post(gateway.url, {**ASK, "stream": True})
        assert got.headers["x-bpac-threshold"] == "1.0"
        assert b"42" in got.body
        gateway.idle()
        found = gateway.status()["switch"]
        assert (found["answer"], found["unknown"]) == ("yes", 0)


def test_history_has_the_score_of_all_drafts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table with scores opens nothing that its losses forbid, although no loss lies below a score of 0.5."""
    config, table = tmp_path / "gateway.toml", tmp_path / "history.csv"
    data = settings("http://127.0.0.1:1/v1", gateway={"store": f"sqlite:///{tmp_path}/bpac.db"}, **SWITCH)
    config.write_text(to_toml(data))
    rows = [f"{0.1 if number % 3 else 0.5},{0.0 if number % 3 else 1.0}" for number in range(300)]
    table.write_text("\n".join(["uncertainty,loss", *rows]))
    assert program.main(["warm", str(config), str(table), "--route", "homework"]) == 0
    capsys.readouterr()
    found = verdict(capsys, config, 1)
    assert (found["answer"], found["games"][0]["audits"]) == ("no", 300)
    with RunningGateway(data) as gateway:
        assert gateway.status()["threshold"] == 0.0
        assert gateway.status()["switch"]["answer"] == "no"


def test_a_segment_that_was_not_asked_since_the_terms_changed_is_no_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer is yes when all segments have been asked; games from before the route was divided do not count."""
    config, table = tmp_path / "gateway.toml", tmp_path / "history.csv"
    table.write_text("\n".join(["uncertainty,loss", *["0,0"] * 300]))

    def use(**route: Any) -> None:
        store = {"store": f"sqlite:///{tmp_path}/bpac.db"}
        config.write_text(to_toml(settings("http://127.0.0.1:1/v1", gateway=store, **{**SWITCH, **route})))

    def warm(*segment: str) -> None:
        named = [word for name in segment for word in ("--segment", name)]
        assert program.main(["warm", str(config), str(table), "--route", "homework", *named]) == 0
        capsys.readouterr()

    use()
    warm()
    assert verdict(capsys, config, 0)["answer"] == "yes"
    use(segment_by="user")
    assert verdict(capsys, config, 1) == {"route": "homework", "answer": "not_yet", "games": []}
    warm("a")
    warm("b")
    assert verdict(capsys, config, 0)["answer"] == "yes"
    use(segment_by="user", epsilon=0.1)
    warm("a")
    found = verdict(capsys, config, 1)
    assert (found["answer"], {game["segment"]: game["answer"] for game in found["games"]}) == (
        "not_yet",
        {"a": "yes", "b": "not_yet"},
    )
    assert main(["switch", str(config), "homework"]) == 1
    assert "homework b: not yet: no request has been decided under the present terms" in capsys.readouterr().out
    warm("b")
    assert verdict(capsys, config, 0)["answer"] == "yes"


@pytest.mark.parametrize(
    ("route", "message"),
    [
        ({"score": "none", "learn": True}, "no score is learned"),
        ({"score": "none", "policy": "budget"}, "needs policy"),
        ({"score": "none", "assume": "any"}, "needs policy"),
        ({"score": {"name": "none", "otherwise": 1.0}}, "leave otherwise out"),
        ({"score": {"name": "entropy", "otherwise": "none"}}, "leave otherwise out"),
    ],
)
def test_settings_that_allow_no_verdict_are_refused(route: dict[str, Any], message: str) -> None:
    """The error says why."""
    with pytest.raises(SettingsError, match=message):
        Config.read(settings("http://127.0.0.1:1/v1", **route))


def test_the_command_refuses_other_routes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A route that does not exist, or that decides by a score, gets exit code 2 and a remedy."""
    config = tmp_path / "gateway.toml"
    config.write_text(to_toml(settings("http://127.0.0.1:1/v1", gateway={"store": f"sqlite:///{tmp_path}/bpac.db"})))
    assert program.main(["switch", str(config), "homework"]) == 2
    assert 'set score = "none"' in capsys.readouterr().err
    assert program.main(["switch", str(config), "nothing"]) == 2
    assert "known: homework" in capsys.readouterr().err
