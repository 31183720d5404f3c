"""Proxies that the environment names, and certificates of a private authority."""

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bpac.errors import SettingsError
from bpac.gateway.config.file import Config
from bpac.models.via import proxy_for
from bpac.testing import Reply, ScriptedServer
from tests.gateway.configured import settings
from tests.gateway.operations.asking import ask
from tests.gateway.operations.forwarding import Proxy
from tests.gateway.running import RunningGateway

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests do not depend on the proxies of this machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def port_of(models: ScriptedServer) -> int:
    """The port that a scripted server listens on."""
    return int(models.base_url.rpartition(":")[2].removesuffix("/v1"))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("login", ["", "me:se-cret"])
def test_models_are_reached_through_the_proxy(monkeypatch: pytest.MonkeyPatch, stream: bool, login: str) -> None:
    """A host that only the proxy can reach answers, with the proxy's login where it needs one."""
    with ScriptedServer(Reply("42")) as models, Proxy(port_of(models), login) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://{login}@{proxy.address}" if login else proxy.address)
        with RunningGateway(settings("http://models.test/v1")) as gateway:
            status, _, body = ask(gateway.url, stream=stream)
            assert (status, "42" in str(body)) == (200, True)
            gateway.idle()
            assert proxy.asked == ["POST http://models.test/v1/chat/completions HTTP/1.1"] * 2


def test_hosts_in_no_proxy_and_this_machine_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that does not exist is not asked for 127.0.0.1, and exempted hosts need none."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "intern.test")
    assert proxy_for("http://intern.test/v1") is None
    assert proxy_for("http://a.intern.test:8000/v1") is None
    assert proxy_for("http://localhost/v1") is None
    assert proxy_for("http://[::1]:8000/v1") is None
    assert proxy_for("https://extern.test/v1") is None
    assert proxy_for("http://extern.test/v1") == "http://127.0.0.1:9"
    with ScriptedServer(Reply("42")) as models, RunningGateway(settings(models.base_url)) as gateway:
        assert ask(gateway.url)[0] == 200


def test_a_proxy_that_is_down_is_a_failed_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller gets 502, without the address of the proxy, and nothing is sent around it."""
    monkeypatch.setenv("ALL_PROXY", "http://me:se-cret@127.0.0.1:9")
    with RunningGateway(settings("http://models.test/v1")) as gateway:
        status, _, body = ask(gateway.url)
        assert (status, "127.0.0.1" in str(body)) == (502, False)


def test_a_proxy_that_cannot_be_used_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SOCKS proxy is not supported: the error names the variable, and hides the password."""
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:se-cret@127.0.0.1:9")
    with pytest.raises(SettingsError, match="HTTPS_PROXY") as error:
        proxy_for("https://models.test/v1")
    assert "se-cret" not in str(error.value)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for models.test, which is its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the command openssl")
    place = tmp_path_factory.mktemp("certificates")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=models.test"]
    command += ["-addext", "subjectAltName=DNS:models.test,DNS:localhost"]
    command += ["-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return place


def encrypted(models: ScriptedServer, authority: Path) -> None:
    """Have a scripted server speak TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
    http: Any = models._http
    http.socket = context.wrap_socket(http.socket, server_side=True)


def test_a_private_authority_is_trusted_for_its_model_only(monkeypatch: pytest.MonkeyPatch, authority: Path) -> None:
    """With ca_file the server is trusted, through a tunnel of the proxy; without it the connection is refused."""
    with ScriptedServer(Reply("42")) as models, Proxy(port_of(models), "me:se-cret") as proxy:
        encrypted(models, authority)
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:se-cret@{proxy.address}")
        trusted = settings("https://models.test/v1", model={"ca_file": str(authority / "cert.pem")})
        with RunningGateway(trusted) as gateway:
            assert ask(gateway.url)[0] == 200
            gateway.idle()
            assert set(proxy.asked) == {"CONNECT models.test:443 HTTP/1.1"}
            assert all("proxy-authorization" not in request.headers for request in models.requests)
            # The same server without the file is not trusted, also while a connection to it is open.
            assert gateway.reload(settings("https://models.test/v1"))
            assert ask(gateway.url)[0] == 502


def test_a_private_authority_without_a_proxy(authority: Path) -> None:
    """Connections without a proxy trust the same certificates; a certificate for another name is refused."""
    own = {"ca_file": str(authority / "cert.pem")}
    with ScriptedServer(Reply("42")) as models:
        encrypted(models, authority)
        address = f"{port_of(models)}/v1"
        with RunningGateway(settings(f"https://localhost:{address}", model=own)) as gateway:
            assert ask(gateway.url)[0] == 200
            assert gateway.reload(settings(f"https://127.0.0.1:{address}", model=own))
            assert ask(gateway.url)[0] == 502
            assert gateway.reload(settings(f"https://localhost:{address}"))
            assert ask(gateway.url)[0] == 502


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_refused(tmp_path: Path, content: str | None) -> None:
    """The mistake is found when the configuration is read, with its path."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SettingsError, match=r"models\.small\.ca_file: .*ca\.pem cannot be used"):
        Config.read(settings("https://models.test/v1", model={"ca_file": str(file)}))
