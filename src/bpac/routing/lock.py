"""The lock of a router.

1. Every call that changes a router, or reads more than one number of it, holds its lock: calls from several threads
   happen one after the other, and none is lost.
2. The journal callback is called with the lock held, so that the journal has the order in which entries took effect.
3. The lock may be taken again by the thread that holds it: a journal callback may read the router that it writes for.
"""

from threading import RLock

__all__ = ["RLock"]
