"""Going on with a store that has failed: it is opened again, and the games are restored from it as at a start.

Requests under way belong to the games before the failure. What they want to record is refused by the store that failed,
so they get an error, and count as a restart would count them.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from bpac.errors import StoreError
from bpac.stores import Store

T = TypeVar("T")

log = logging.getLogger("bpac.gateway")


async def reopened(failed: Store, restore: Callable[[Store], T]) -> tuple[Store, T]:
    """The store, opened again, and what was restored from it; ``StoreError`` if that is not possible at present.

    Parameters
    ----------
    failed: the store that failed.
    restore: restores the games; what it writes is durable when this returns.
    """
    opened: Store | None = None
    opening = asyncio.create_task(asyncio.to_thread(failed.reopened))
    try:
        opened = await asyncio.shield(opening)
        games = restore(opened)
        await opened.durable()
    except asyncio.CancelledError:  # the gateway stops
        with suppress(StoreError):
            await asyncio.to_thread((opened or await opening).close)
        raise
    except Exception as error:  # whatever it is, it is tried again later
        if opened is not None:
            await asyncio.to_thread(opened.close)
        if isinstance(error, StoreError):
            raise
        log.error("the games cannot be restored from the store", exc_info=error)
        raise StoreError(f"the games cannot be restored ({type(error).__name__})") from error
    return opened, games
