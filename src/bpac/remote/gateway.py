"""Requests to a gateway, repeated until it answers or counts as gone."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from bpac import __version__
from bpac.errors import GatewayGone, GatewayRefused
from bpac.models.connections import FAILURES, Session, check_headers, new_session, total_timeout

# The types that a value may have.
Kinds = type | tuple[type, ...]
# Statuses after which the same request may succeed.
TRY_AGAIN = (408, 429, 500, 502, 503, 504)
# Seconds before the second attempt; each further pause is twice as long.
PAUSE = 0.2


class GatewayClient:
    """Sends requests that may be repeated: each has an effect once.

    Parameters
    ----------
    base_url: address of the gateway, with or without ``/v1``.
    headers: sent with every request.
    timeout: seconds that one attempt may take.
    retries: how often a request is sent again.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str], timeout: float, retries: int) -> None:
        self._url = base_url.rstrip("/").removesuffix("/v1")
        self._headers = {"User-Agent": f"bpac/{__version__}", "Content-Type": "application/json", **headers}
        check_headers(self._headers)
        self._timeout = total_timeout(timeout)
        self._attempts = retries + 1
        self._session: Session | None = None

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
        needs: Mapping[str, Kinds] | None = None,
    ) -> dict[str, Any]:
        """The reply to a request, or ``GatewayRefused``, or ``GatewayGone`` after the last attempt.

        Parameters
        ----------
        path: below ``/v1``.
        body: JSON values.
        headers: of this request (default: none).
        needs: what the reply must have, with its types (default: nothing). A server that replies otherwise is no
            gateway, and nothing that it says is acted upon.
        """
        return await self._sent("POST", path, json.dumps(body).encode(), headers or {}, needs or {})

    async def get(self, path: str) -> dict[str, Any]:
        """The document at a path below ``/v1``, or an error as for ``post``."""
        return await self._sent("GET", path, None, {}, {})

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _sent(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str], needs: Mapping[str, Kinds]
    ) -> dict[str, Any]:
        pause, problem = PAUSE, ""
        for attempt in range(self._attempts):
            if attempt:
                await asyncio.sleep(pause)
                pause *= 2
            try:
                status, document = await self._attempt(method, path, data, headers)
            except (*FAILURES, ValueError) as error:
                problem = f"{type(error).__name__}: {error}"
                continue
            if status == 200:
                wrong = [name for name, kinds in needs.items() if not isinstance(document.get(name, ...), kinds)]
                if not wrong:
                    return document
                problem = f"its reply lacks {', '.join(wrong)}, so it is no gateway"
                continue
            refused = _refusal(status, document)
            if attempt and refused.code == "already_resolved":
                return {}  # the first attempt got through, and its reply was lost
            if status not in TRY_AGAIN:
                raise refused
            problem = str(refused)
        raise GatewayGone(f"the gateway at {self._url} does not answer: {problem}")

    async def _attempt(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, Any]]:
        if self._session is None:
            self._session = new_session()
        async with self._session.request(
            method,
            f"{self._url}/v1/{path}",
            data=data,
            headers={**self._headers, **headers},
            timeout=self._timeout,
            allow_redirects=False,
            trace_request_ctx={},
        ) as response:
            found = json.loads(await response.read())
            if not isinstance(found, dict):
                raise ValueError("the reply is no JSON object")
            return response.status, found


def _refusal(status: int, document: Mapping[str, Any]) -> GatewayRefused:
    error = document.get("error")
    said = error if isinstance(error, dict) else {}
    message = f"the gateway refused the request (status {status}): {said.get('message') or 'it does not say why'}"
    return GatewayRefused(message, status, str(said.get("code") or ""))
