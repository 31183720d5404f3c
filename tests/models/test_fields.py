"""URLs with secrets are used as they are, and shown without the secrets."""

import asyncio
import json
import logging
from typing import Any

import pytest

from bpac.errors import SettingsError, StoreError, Unavailable
from bpac.gateway.config.models.models import read_models
from bpac.gateway.telemetry.logs import JsonFormatter
from bpac.models.client import ModelClient
from bpac.models.fields import address, endpoint_url, redacted
from bpac.stores import open_store
from bpac.testing import Reply, ScriptedServer

SECRETS = ("s3cret", "t0ken", "me%40x")
ADDRESSES = [
    "http://me:s3cret@127.0.0.1:9/v1",
    "https://t0ken@example.org/v1/",
    "https://me%40x:s3cret@[::1]:9/v1?api-key=t0ken&api-version=t0ken",
    "redis://:s3cret@localhost:6379/0",
    "http://a:s3c@ret:s3cret@host/",
    "http://h/v1?x=1&sig=s3cret#t",
]


@pytest.mark.parametrize("text", ADDRESSES)
def test_secrets_are_left_out(text: str) -> None:
    """What is before the host, and every value of a query. The rest stays, so that the URL can be recognised."""
    for shown in (redacted(text), redacted(f"cannot reach {text}: 'refused'"), redacted(json.dumps({"url": text}))):
        assert not any(secret in shown for secret in SECRETS)
        assert "***" in shown
    assert redacted(text).split("://")[0] == text.split("://", maxsplit=1)[0]


@pytest.mark.parametrize("text", ["http://127.0.0.1:8001/v1", "me@example.org", "a=b&c=d", "is it http://x/y@z?"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    """Only URLs with secrets are changed."""
    assert redacted(text) == text


@pytest.mark.parametrize("part", ["://", "@", "://a:b@", "?a=", "?", "&", "a", "://@", "?a", "\\"])
def test_redaction_takes_linear_time(part: str) -> None:
    """Whatever the text: in the square of its length this test would not end."""
    redacted("x://" + part * 300_000)


def test_errors_and_representations_have_no_secrets() -> None:
    """Those of configurations, settings, clients, and models that do not answer."""
    with pytest.raises(SettingsError) as caught:
        address("https://me:s3cret@:99999/v1?api-key=t0ken", "base_url")
    said = [str(caught.value)]
    with pytest.raises(SettingsError) as caught:
        address("ftp://me:s3cret@x", "base_url")
    said.append(str(caught.value))
    with pytest.raises(SettingsError) as caught:
        open_store("mysql://me:s3cret@localhost/0")
    said.append(str(caught.value))
    with pytest.raises(StoreError) as gone:
        open_store("redis://me:s3cret@127.0.0.1:9/0")
    said.append(str(gone.value))
    client = ModelClient("http://me:s3cret@127.0.0.1:9/v1?api-key=t0ken", "m", retries=0)

    async def ask() -> None:
        async with client:
            with pytest.raises(Unavailable) as caught:
                await client.complete([{"role": "user", "content": "?"}])
            said.append(str(caught.value))

    asyncio.run(ask())
    table = {"base_url": "http://me:s3cret@x/v1", "model": "m", "api_key": "t0ken"}
    said += [str(client), repr(client), repr(read_models({"a": table}))]
    assert not [text for text in said if any(secret in text for secret in SECRETS)]


@pytest.mark.parametrize("end", ['"', "\\", '\\"', "'", "\n", "é"])
def test_lines_of_the_log_stay_json(end: str) -> None:
    """Whatever a URL ends in."""
    said = f"http://me:s3cret@h/?key=t0ken{end}"
    told = json.loads(JsonFormatter().format(logging.makeLogRecord({"msg": said, "url": said + "x"})))
    assert told["message"].startswith("http://***@h/?key=***")
    assert "t0ken" not in told["url"]


def test_no_secret_gets_into_the_log() -> None:
    """Not even in the messages of another library, or in the values beside a message."""
    record = logging.makeLogRecord(
        {"msg": "cannot connect to %s", "args": (ADDRESSES[0],), "url": ADDRESSES[2], "levelname": "ERROR"}
    )
    line = JsonFormatter().format(record)
    assert not any(secret in line for secret in SECRETS)
    told: dict[str, Any] = json.loads(line)
    assert told["message"] == "cannot connect to http://***@127.0.0.1:9/v1"


def test_the_query_of_a_base_url_stays_at_the_end() -> None:
    """Where servers expect an API version; and a password in the URL is sent as credentials."""
    assert endpoint_url("http://h/v1/?a=1", "/chat/completions") == "http://h/v1/chat/completions?a=1"
    paths = []
    with ScriptedServer(Reply("42")) as server:
        base = server.base_url.replace("http://", "http://me:s3cret@") + "?api-version=1"

        async def ask() -> None:
            async with ModelClient(base, "m") as client:
                await client.complete([{"role": "user", "content": "?"}])

        asyncio.run(ask())
        paths = [request.headers["authorization"] for request in server.requests]
    assert paths == ["Basic bWU6czNjcmV0"]
