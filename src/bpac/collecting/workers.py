"""Several workers at once."""

import asyncio
from collections.abc import Awaitable, Callable


async def run_workers(workers: int, work: Callable[[], Awaitable[None]]) -> None:
    """Run so many of them to the end; the first error calls off the others and is raised as it is.

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
        # The others were called off: one reason is enough.
        raise error.exceptions[0] from None
