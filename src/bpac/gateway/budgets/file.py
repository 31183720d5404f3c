"""What was used of the budgets, kept in a file beside the store so that a restart does not grant a new budget."""

import asyncio
import json
import logging
import os
from pathlib import Path

from bpac.gateway.budgets.budgets import Budgets
from bpac.stores import files_of
from bpac.stores.private_files import open_private

log = logging.getLogger("bpac.gateway")


class BudgetsFile:
    """The file of the budgets; none with a store in memory, where they begin anew with each start.

    It is written about once a second if something has changed, and when the gateway stops: a crash forgets what was
    used in the last second.

    Parameters
    ----------
    store: the address of the store.
    """

    def __init__(self, store: str) -> None:
        files = files_of(store)
        self.path: Path | None = Path(f"{files[0]}.budgets") if files else None

    def load(self, budgets: Budgets) -> None:
        """Read what was used; a file that cannot be read is reported, and the budgets begin anew."""
        if self.path is None or not self.path.exists():
            return
        try:
            budgets.load(json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.error(
                "the file of the budgets cannot be read: today's budgets begin anew; delete the file if it is damaged",
                extra={"file": str(self.path), "error": repr(error)},
            )

    async def save(self, budgets: Budgets) -> None:
        """Write what was used, if it has changed."""
        if self.path is None or not budgets.changed:
            return
        budgets.changed = False
        text = json.dumps(budgets.to_json())
        try:
            await asyncio.to_thread(_write, self.path, text)
        except BaseException:
            budgets.changed = True
            raise


def _write(path: Path, text: str) -> None:
    unfinished = f"{path}.new"
    with os.fdopen(open_private(unfinished), "w", encoding="utf-8") as file:
        file.truncate()
        file.write(text)
    os.replace(unfinished, path)
