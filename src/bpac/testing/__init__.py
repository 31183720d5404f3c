"""Fakes for tests, ours and our users': a real HTTP server that answers as a script says."""

from bpac.testing.replies import SILENCE, Reply, Request, Script, in_turn
from bpac.testing.server import ScriptedServer

__all__ = ["SILENCE", "Reply", "Request", "Script", "ScriptedServer", "in_turn"]
