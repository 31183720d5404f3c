"""``bpac doctor`` says what is wrong with a gateway and what to do; ``bpac init`` writes a file that works."""

import io
import json
import os
import pty
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bpac.cli.program import main
from bpac.gateway.config.file import load_config
from bpac.testing import Reply, Request, ScriptedServer
from tests.gateway.configured import settings
from tests.gateway.running import RunningGateway, pair
from tests.gateway.serving import to_toml
from tests.ports import free_port

SKY = Reply("It scatters blue light more than red light", probability=0.8)
MODELS = pair(SKY, Reply("It scatters", reasoning="the user asks"))


def config_file(place: Path, base_url: str, **changes: Any) -> Path:
    """A configuration file that is all right, with changes to its ``[gateway]``, ``small`` and route."""
    gateway = {"listen": f"127.0.0.1:{free_port()}", "store": f"sqlite:///{place / 'bpac.db'}", "probe_timeout": 5.0}
    data = settings(base_url, gateway=gateway | changes.get("gateway", {}), **changes.get("route", {}))
    data["models"]["small"] |= changes.get("small", {})
    file = place / "gateway.toml"
    file.write_text(to_toml(data))
    return file


def doctor(capsys: pytest.CaptureFixture[str], file: Path) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of ``bpac doctor`` and its findings."""
    code = main(["doctor", str(file), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] == (code == 0)
    return code, report["findings"]


def wrong(findings: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """What is wrong: check, level and message; each has a remedy."""
    found = [one for one in findings if one["level"] != "ok"]
    assert all(one["remedy"] for one in found)
    return [(one["check"], one["level"], one["message"]) for one in found]


def test_all_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each finding, exit code 0, and nothing is left behind."""
    with ScriptedServer(MODELS) as models:
        file = config_file(tmp_path, models.base_url)
        assert main(["doctor", str(file)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1] == "all checks passed"
        assert all(line.startswith("ok ") for line in lines[:-1])
        assert any("model small (draft of homework): log-probabilities given" in line for line in lines)
        assert any("model large (expert of homework): thinking on" in line for line in lines)
        assert os.listdir(tmp_path) == ["gateway.toml"]
        code, findings = doctor(capsys, file)
        assert (code, wrong(findings)) == (0, [])


def test_routes_with_one_model_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line about the file names all routes."""
    with ScriptedServer(MODELS) as models:
        file = config_file(tmp_path, models.base_url)
        file.write_text(file.read_text() + '[routes.alone]\nexpert = "large"\n')
        assert main(["doctor", str(file)]) == 0
        assert "is valid: routes homework, alone; models small, large" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models", "is not TOML"),
        ("[models.a]\n", "routes is missing"),
        ('[models.a]\nbase_ulr = "x"\n[routes.r]\n', "models.a.base_ulr: unknown key, did you mean base_url?"),
    ],
)
def test_a_bad_file_is_a_finding(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and one line with the path of the mistake."""
    file = tmp_path / "gateway.toml"
    file.write_text(text)
    code, findings = doctor(capsys, file)
    ((check, level, message),) = wrong(findings)
    assert (code, check, level) == (1, "config", "error")
    assert said in message
    code, findings = doctor(capsys, tmp_path / "missing.toml")
    assert (code, len(findings)) == (1, 1)


def test_every_missing_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All at once, and the other models are probed nevertheless."""
    with ScriptedServer(MODELS) as models:
        keys = {"gateway": {"api_keys": ["env:NO_SUCH_1"]}, "small": {"api_key": "env:NO_SUCH_2"}}
        code, findings = doctor(capsys, config_file(tmp_path, models.base_url, **keys))
        assert code == 1
        assert [message for check, _, message in wrong(findings) if check == "key"] == [
            "gateway.api_keys[0] is env:NO_SUCH_1, which is not set",
            "models.small.api_key is env:NO_SUCH_2, which is not set",
        ]
        assert {one["subject"] for one in findings if one["check"] == "reachable"} == {
            "model large (expert of homework)"
        }


def test_a_model_with_a_dot_in_its_name_is_not_probed_without_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server would refuse the request without a key, which says nothing about the key."""
    with ScriptedServer(MODELS) as models:
        file = config_file(tmp_path, models.base_url, small={"api_key": "env:NO_SUCH"}, route={"draft": "gpt-4.1"})
        file.write_text(file.read_text().replace("[models.small]", '[models."gpt-4.1"]'))
        _, findings = doctor(capsys, file)
        assert [message for _, _, message in wrong(findings)] == [
            "models.gpt-4.1.api_key is env:NO_SUCH, which is not set"
        ]
        assert {request.body["model"] for request in models.requests} == {"expert"}


def test_models_that_do_not_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The findings are those of the probes at the start of a gateway."""
    with ScriptedServer(pair(Reply("ok", logprobs=False), Reply("no such key", status=401))) as models:
        code, findings = doctor(capsys, config_file(tmp_path, models.base_url))
        assert code == 1
        assert [(check, level) for check, level, _ in wrong(findings)] == [("score", "error"), ("key", "error")]
        assert "no such key" not in json.dumps(findings)


def test_a_store_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory that is missing, a file that is no database, and memory that forgets."""
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"this is not a database " * 100)
    with ScriptedServer(MODELS) as models:
        for store, level, said in (
            (f"sqlite:///{tmp_path / 'missing' / 'bpac.db'}", "error", "cannot be written"),
            (f"sqlite:///{damaged}", "error", "damaged.db"),
            ("memory://", "warning", "forgets every journal"),
        ):
            code, findings = doctor(capsys, config_file(tmp_path, models.base_url, gateway={"store": store}))
            ((check, found, message),) = wrong(findings)
            assert (check, found, code) == ("store", level, 1 if level == "error" else 0)
            assert said in message
    assert damaged.read_bytes() == b"this is not a database " * 100
    assert not (tmp_path / "missing").exists()


def test_an_address_that_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By something else: an error. By the gateway itself, also behind a proxy: a warning, and so is its store."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")  # nothing listens there
    with ScriptedServer(MODELS) as models, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        code, findings = doctor(capsys, config_file(tmp_path, models.base_url, gateway={"listen": taken}))
        assert (code, [check for check, *_ in wrong(findings)]) == (1, ["listen"])
    with ScriptedServer(MODELS) as models:
        file = config_file(tmp_path, models.base_url)
        with RunningGateway(tomllib.loads(file.read_text())):
            code, findings = doctor(capsys, file)
        assert [(check, level) for check, level, _ in wrong(findings)] == [("store", "warning"), ("listen", "warning")]
        assert code == 0


def test_keys_without_an_operator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody could see the dashboard (warning), nobody could report a loss (error)."""
    with ScriptedServer(MODELS) as models:
        changes = {"gateway": {"api_keys": ["secret"]}, "route": {"loss": "external"}}
        code, findings = doctor(capsys, config_file(tmp_path, models.base_url, **changes))
        assert (code, [level for _, level, _ in wrong(findings)]) == (1, ["warning", "error"])
        assert "secret" not in json.dumps(findings)


FLAGS = ["--draft-model", "draft", "--expert-model", "expert"]


def test_init_writes_a_file_that_doctor_and_serve_accept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options alone are enough; an existing file is not overwritten without --force."""
    out = tmp_path / "gateway.toml"
    with ScriptedServer(MODELS) as models:
        urls = ["--draft-url", models.base_url, "--expert-url", models.base_url]
        place = ["--store", f"sqlite:///{tmp_path / 'bpac.db'}", "--listen", f"127.0.0.1:{free_port()}"]
        arguments = ["init", *urls, *FLAGS, *place, "--epsilon", "0.2", "--out", str(out)]
        assert main(arguments) == 0
        assert capsys.readouterr().out.startswith(f"wrote {out}. Check it:  bpac doctor {out}")
        assert load_config(out).routes["chat"].epsilon == 0.2
        code, findings = doctor(capsys, out)
        assert (code, wrong(findings)) == (0, [])
        with RunningGateway(tomllib.loads(out.read_text())) as gateway:
            answer = gateway.client().chat.completions.create(
                model="chat", messages=[{"role": "user", "content": "Why is the sky blue?"}]
            )
            assert answer.choices[0].message.content
        written = out.read_text()
        assert main([*arguments[:-4], "--epsilon", "0.3", "--out", str(out)]) == 2
        assert "exists: give another file with --out, or overwrite it with --force" in capsys.readouterr().err
        assert out.read_text() == written
        assert main([*arguments[:-4], "--epsilon", "0.3", "--out", str(out), "--force"]) == 0
        assert load_config(out).routes["chat"].epsilon == 0.3


@pytest.mark.parametrize("answers", ["short", "prose", "tools", "external"])
def test_init_knows_what_answers_are_like(answers: str, tmp_path: Path) -> None:
    """Each kind gets the loss that suits it; keys are in the environment, never in the file."""
    out = tmp_path / "gateway.toml"
    urls = ["--draft-url", "http://a/v1", "--expert-url", "https://b/v1", "--expert-key", "env:SOME_KEY"]
    assert main(["init", *urls, *FLAGS, "--answers", answers, "--out", str(out)]) == 0
    values = tomllib.loads(out.read_text())
    loss = values["routes"]["chat"]["loss"]
    names = {"short": "answer", "prose": "judge", "tools": "tool_call", "external": "external"}
    assert (loss["name"] if isinstance(loss, dict) else loss) == names[answers]
    assert values["models"]["expert"]["api_key"] == "env:SOME_KEY"


@pytest.mark.parametrize(("api", "preset"), [("responses", "openai-responses"), ("messages", "anthropic-messages")])
def test_one_model_behind_another_api_is_told_apart_by_its_preset(api: str, preset: str, tmp_path: Path) -> None:
    """Thinking is off in drafts and on in the expert."""
    file = tmp_path / "gateway.toml"
    url = "http://127.0.0.1:9/v1"
    asked = ["--draft-url", url, "--draft-model", "m", "--expert-url", url, "--expert-model", "m"]
    apis = ["--draft-api", api, "--expert-api", api, "--score", "verbalized"]
    assert main(["init", *asked, *apis, "--out", str(file)]) == 0
    models = load_config(file).models
    assert {(model.api, model.preset) for model in models.values()} == {(api, preset)}
    assert [model.thinking for model in models.values()] == ["off", "on"]


def test_one_model_is_told_apart_by_thinking(tmp_path: Path) -> None:
    """If both are the same model on the same server, thinking is off for one and on for the other."""
    out = tmp_path / "gateway.toml"
    same = ["--draft-url", "http://a/v1", "--expert-url", "http://a/v1", "--draft-model", "q", "--expert-model", "q"]
    assert main(["init", *same, "--out", str(out)]) == 0
    models = load_config(out).models
    thinking = [models[name].body["chat_template_kwargs"]["enable_thinking"] for name in ("draft", "expert")]
    assert thinking == [False, True]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--draft-url", "127.0.0.1:8001"], "must start with http://"),
        (["--epsilon", "1.5"], "epsilon"),
        (["--draft-key", "sk-1234"], "a key is given as env:NAME"),
        (["--listen", "0.0.0.0:8800"], "a gateway without keys can be used by everyone"),
        (["--draft-url", ""], "--draft-url is missing"),
    ],
)
def test_init_refuses_what_serve_would_refuse(
    change: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one line and exit code 2, and without a file."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    urls = ["--draft-url", "http://a/v1", "--expert-url", "http://b/v1"]
    assert main(["init", *urls, *FLAGS, "--out", str(tmp_path / "gateway.toml"), *change]) == 2
    assert said in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_models_behind_other_apis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``init`` writes their API, ``doctor`` asks them through it, and says so if the server has another one."""
    file = tmp_path / "gateway.toml"

    def written(url: str, *more: str) -> None:
        asked = ["--draft-url", url, "--draft-model", "draft", "--expert-url", url, "--expert-model", "expert", *more]
        stored = [
            "--listen",
            f"127.0.0.1:{free_port()}",
            "--store",
            f"sqlite:///{tmp_path}/a.db",
            "--out",
            str(file),
            "--force",
        ]
        assert main(["init", *asked, *stored]) == 0
        capsys.readouterr()

    with ScriptedServer(MODELS) as models:
        written(models.base_url, "--draft-api", "responses", "--expert-api", "messages")
        assert [model.api for model in load_config(file).models.values()] == ["responses", "messages"]
        code, findings = doctor(capsys, file)
        assert (code, wrong(findings)) == (0, [])
        assert {request.path for request in models.requests} == {"/v1/responses", "/v1/messages"}
        # A server of chat completions, whatever it is asked.
        models.script = lambda request: Reply(raw=json.dumps(SKY.body(Request(1, request.body))).encode())
        code, findings = doctor(capsys, file)
        assert [message.partition(" sends ")[2] for _, _, message in wrong(findings)] == [
            "something else than a response", "something else than a message",
        ]  # fmt: skip


def test_init_asks_what_was_not_given(tmp_path: Path) -> None:
    """On a terminal: empty answers take the defaults, wrong ones are asked for again."""
    out = tmp_path / "gateway.toml"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "bpac", "init", "--expert-url", "http://b/v1", "--out", str(out)]
    process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(theirs)
    answers = ["http://a/v1", "small", "", "large", "", "env:KEY", "much", "0.1", "poems", "prose", ""]
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    said, asked = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0, asked
    assert b"Name of the fast model on that server" in asked
    assert said.startswith(b"wrote ")
    values = tomllib.loads(out.read_text())
    assert (values["models"]["draft"]["model"], values["models"]["expert"]["model"]) == ("small", "large")
    assert values["routes"]["chat"]["epsilon"] == 0.1
    assert values["routes"]["chat"]["loss"]["name"] == "judge"
    assert values["models"]["expert"]["api_key"] == "env:KEY"
