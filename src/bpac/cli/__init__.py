"""The command line.

``program`` finds the command that is called, and imports its module from ``commands``; the other modules here are what
several commands share.
"""

from bpac.cli.program import main

__all__ = ["main"]
