"""Which endpoint is used: the direct one where aiohttp's inner names are as expected, the public API elsewhere."""

import asyncio
import subprocess
import sys
from typing import Any

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from bpac.models import endpoint
from bpac.models.connections import SessionEndpoint, new_session
from bpac.models.direct_endpoint import DirectEndpoint, is_supported
from bpac.models.endpoint import new_endpoint


@pytest.mark.parametrize(("direct", "kind"), [(True, DirectEndpoint), (False, SessionEndpoint)])
def test_the_direct_endpoint_is_used_where_it_is_supported(
    direct: bool, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is with the installed version of aiohttp."""

    async def run() -> type:
        async with new_session() as session:
            return type(new_endpoint(session, "http://localhost/", {}))

    assert is_supported()
    assert endpoint.DIRECT
    monkeypatch.setattr(endpoint, "DIRECT", direct)
    assert asyncio.run(run()) is kind


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (ResponseHandler, "should_close"), (ResponseHandler, "start_timeout"),
        (Connection, "protocol"), (Connection, "release"), (aiohttp.BaseConnector, "connect"),
    ],
)  # fmt: skip
def test_a_missing_name_is_not_supported(owner: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever it is."""
    monkeypatch.delattr(owner, name)
    assert not is_supported()


@pytest.mark.parametrize(
    ("owner", "name", "changed"),
    [
        (aiohttp.ClientRequest, "__init__", lambda self, method, url, *, headers, session: None),
        (aiohttp.BaseConnector, "connect", lambda self, request: None),
        (ResponseHandler, "set_response_params", lambda self, *, read_until_eof: None),
        (ResponseHandler, "start_timeout", lambda self, seconds: None),
    ],
)
def test_other_parameters_are_not_supported(
    owner: type, name: str, changed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function of the same name is not enough."""
    monkeypatch.setattr(owner, name, changed)
    assert not is_supported()


def test_a_module_that_cannot_be_imported_selects_the_public_api() -> None:
    """The names may move to another module in another version."""
    code = "import sys, aiohttp; sys.modules['aiohttp.client_proto'] = None; from bpac.models import endpoint"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print(endpoint.DIRECT)"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
