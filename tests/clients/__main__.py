"""Runs all clients and writes docs/clients.md; prints what did not work."""

import sys
import tempfile
from pathlib import Path

from tests.clients.run import run_clients
from tests.clients.table import PAGE, page

with tempfile.TemporaryDirectory() as directory:
    found = run_clients(Path(directory))
PAGE.write_text(page(found.errors), encoding="utf-8")
for cell, error in found.errors.items():
    if error:
        sys.stdout.write(f"{' '.join(cell)}\n{error}\n")
