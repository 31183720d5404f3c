"""Concurrent asyncio workers."""

import asyncio
from collections.abc import Awaitable, Callable


async def run_workers(workers: int, work: Callable[[], Awaitable[None]]) -> None:
    """Run a number of workers to the end; the first error cancels the others and is raised.

    Parameters
    ----------
    workers: number of workers.
    work: the work of one worker.

    >>> found = []
    >>> async def work():
    ...     found.append("done")
    >>> asyncio.run(run_workers(2, work))
    >>> found
    ['done', 'done']
    """

    async def one() -> None:
        await work()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(one())
    except ExceptionGroup as error:
        # The other workers were cancelled because of the first error, so that one is enough.
        raise error.exceptions[0] from None
