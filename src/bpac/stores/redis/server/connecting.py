"""Connections to Redis. The only module that imports redis-py, which is optional."""

import asyncio
from collections.abc import Sequence
from typing import Any

from bpac.errors import MissingExtra, StoreError
from bpac.stores.redis.server.address import RedisAddress
from bpac.stores.redis.server.scripts import script
from bpac.stores.redis.server.server_faults import BY_CODE, REMEDY, ServerFault, of_cluster, too_few_copies

try:
    from redis import Redis, RedisCluster, Sentinel
    from redis.asyncio import Redis as AsyncRedis
    from redis.asyncio import RedisCluster as AsyncRedisCluster
    from redis.asyncio import Sentinel as AsyncSentinel
    from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
    from redis.asyncio.retry import Retry as AsyncRetry
    from redis.backoff import NoBackoff
    from redis.cluster import ClusterNode
    from redis.exceptions import NoScriptError, RedisClusterException, RedisError, ResponseError
    from redis.retry import Retry
except ImportError as error:
    raise MissingExtra("redis", "redis") from error

UNREACHABLE = (RedisError, RedisClusterException, OSError, asyncio.TimeoutError)
WRONG_TYPE = "WRONGTYPE"
# The codes of errors that have a class.
CODES = {
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "NoPermissionError": "NOPERM",
    "ClusterDownError": "CLUSTERDOWN",
}
# The share of the time of an attempt within which the copies must be made that WAIT asks for.
WAIT_SHARE = 0.8


class RedisGone(StoreError):
    """Redis cannot be reached, or did not do what it was asked to."""


class WrongType(RedisGone):
    """A key holds something else than what was written: somebody has replaced it."""


class TooFewCopies(RedisError):
    """What was written is not on as many copies as it must be.

    Parameters
    ----------
    fault: how many there are, and what to do.
    """

    def __init__(self, fault: ServerFault) -> None:
        super().__init__(fault.why)
        self.fault = fault


def gone(address: RedisAddress, error: BaseException) -> RedisGone:
    """The error of a call that failed; of what the server wrote only a known first word is used."""
    code = _code(error)
    if code == WRONG_TYPE:
        what = f"a key in Redis at {address.shown} was replaced by something of another type"
        return WrongType(what, cause=what, remedy="keep other programs away from the keys of the gateways")
    if isinstance(error, TooFewCopies):
        fault = error.fault
    elif isinstance(error, RedisClusterException):
        fault = of_cluster(str(error))
    else:
        fault = BY_CODE.get(code) or ServerFault(type(error).__name__, REMEDY)
    what = f"Redis at {address.shown} cannot be used ({fault.why})"
    return RedisGone(what, cause=what, remedy=fault.remedy)


def _code(error: BaseException) -> str:
    """The kind of an error that the server replied with; redis-py leaves it out where it has a class of its own."""
    if not isinstance(error, ResponseError):
        return ""
    return CODES.get(type(error).__name__) or str(error).partition(" ")[0]


class RedisClient:
    """Asynchronous connections to Redis.

    Parameters
    ----------
    address: where it is.
    timeout: seconds after which one attempt is given up (default: half of the timeout of the address).
    """

    def __init__(self, address: RedisAddress, timeout: float | None = None) -> None:
        self.address = address
        timeout = timeout or address.timeout / 2
        self._wait_ms = max(int(1000 * WAIT_SHARE * timeout), 1)
        options = _options(address, timeout) | {"retry": AsyncRetry(NoBackoff(), 0)}
        self._client: Any
        self._sentinel: Any = None
        if address.kind == "cluster":
            nodes = [AsyncClusterNode(host, port) for host, port in address.hosts]
            self._client = AsyncRedisCluster(startup_nodes=nodes, **options)
        elif address.kind == "sentinel":
            self._sentinel = sentinel = _make(
                AsyncSentinel, list(address.hosts), sentinel_kwargs=_watching(options), **options
            )
            self._client = sentinel.master_for(address.service, db=address.database)
        else:
            host, port = address.hosts[0]
            self._client = AsyncRedis(host=host, port=port, db=address.database, **options)

    async def run(self, name: str, keys: Sequence[str], *values: str | bytes | int) -> Any:
        """Run a script; ``RedisGone`` if it is not known whether it took effect.

        Parameters
        ----------
        name: of the script.
        keys, values: its arguments.
        """
        one = script(name)
        try:
            try:
                return await self._evaluated("EVALSHA", one.digest, keys, values)
            except NoScriptError:
                return await self._evaluated("EVAL", one.text, keys, values)
        except UNREACHABLE as error:
            _check_cancelled()
            raise gone(self.address, error) from error

    async def _evaluated(self, command: str, what: str, keys: Sequence[str], values: Sequence[Any]) -> Any:
        wait = self.address.wait
        if not wait:
            method = self._client.evalsha if command == "EVALSHA" else self._client.eval
            return await method(what, len(keys), *keys, *values)
        async with self._client.pipeline(transaction=False) as pipeline:
            pipeline.execute_command(command, what, len(keys), *keys, *values)
            pipeline.execute_command("WAIT", wait, self._wait_ms)
            result, copies = await pipeline.execute(raise_on_error=False)
        for reply in (result, copies):
            if isinstance(reply, Exception):
                raise reply
        if copies < wait:
            raise TooFewCopies(too_few_copies(copies, wait))
        return result

    async def command(self, *words: Any) -> Any:
        """Run a command."""
        try:
            return await self._client.execute_command(*words)
        except UNREACHABLE as error:
            _check_cancelled()
            raise gone(self.address, error) from error

    async def keeps_all(self) -> bool:
        """Whether a restart cannot lose anything: one server, which writes to its disk before it replies."""
        if self.address.kind != "single":
            return False
        try:
            settings = fields_of(await self.command("CONFIG", "GET", "append*"))
        except RedisGone:  # some providers do not allow it
            return False
        values = {_text(name): _text(value) for name, value in settings.items()}
        return (values.get("appendonly"), values.get("appendfsync")) == ("yes", "always")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
        for one in self._sentinel.sentinels if self._sentinel is not None else ():
            await one.aclose()


class BlockingRedisClient:
    """Connections to Redis for commands, and for what happens before a gateway answers requests.

    Parameters
    ----------
    address: where it is.
    """

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        options = _options(address, max(address.timeout, 5.0)) | {"retry": Retry(NoBackoff(), 1)}
        self.client: Any
        if address.kind == "cluster":
            nodes = [_make(ClusterNode, host, port) for host, port in address.hosts]
            try:
                self.client = RedisCluster(startup_nodes=nodes, **options)  # this asks for its nodes at once
            except UNREACHABLE as error:
                raise gone(address, error) from error
        elif address.kind == "sentinel":
            sentinel: Any = _make(Sentinel, list(address.hosts), sentinel_kwargs=_watching(options), **options)
            self.client = sentinel.master_for(address.service, db=address.database)
        else:
            host, port = address.hosts[0]
            self.client = Redis(host=host, port=port, db=address.database, **options)

    def run(self, name: str, keys: Sequence[str], *values: str | bytes | int) -> Any:
        """Run a script."""
        one = script(name)
        try:
            try:
                return self.client.evalsha(one.digest, len(keys), *keys, *values)
            except NoScriptError:
                return self.client.eval(one.text, len(keys), *keys, *values)
        except UNREACHABLE as error:
            raise gone(self.address, error) from error

    def command(self, *words: Any) -> Any:
        """Run a command."""
        try:
            return self.client.execute_command(*words)
        except UNREACHABLE as error:
            raise gone(self.address, error) from error

    def reports(self, section: str) -> list[dict[str, Any]]:
        """What ``INFO`` says of every main server that answers; ``RedisGone`` if none does.

        Parameters
        ----------
        section: the section of ``INFO``.
        """
        if self.address.kind != "cluster":
            return [self.command("INFO", section)]
        found: list[dict[str, Any]] = []
        failure: Exception = OSError("no main server is known")
        for node in self.client.get_primaries():
            try:
                found.append(self.client.execute_command("INFO", section, target_nodes=node))
            except UNREACHABLE as error:  # a copy may take over; games of other nodes can be played
                failure = error
        if not found:
            raise gone(self.address, failure) from failure
        return found

    def close(self) -> None:
        """Close all connections."""
        self.client.close()


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _check_cancelled() -> None:
    """Raise ``CancelledError`` if the task was cancelled: a call that fails at the same moment hides it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def fields_of(reply: Any) -> dict[bytes, bytes]:
    """Names and values in a reply, whichever protocol it came with."""
    return dict(reply) if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def _make(kind: Any, *values: Any, **options: Any) -> Any:
    """An object of a class that redis-py has not typed."""
    return kind(*values, **options)


def _tls(address: RedisAddress) -> dict[str, Any]:
    if not address.tls:
        return {}
    return {"ssl": True} | ({"ssl_ca_certs": address.ca} if address.ca else {})


def _options(address: RedisAddress, timeout: float) -> dict[str, Any]:
    return {
        "username": address.username or None,
        "password": address.password or None,
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "decode_responses": False,
        **_tls(address),
    }


def _watching(options: dict[str, Any]) -> dict[str, Any]:
    """The options of connections to sentinels, which do not know the users of the servers that they watch."""
    return {name: value for name, value in options.items() if name not in ("username", "password")}
