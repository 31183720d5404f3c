"""Fakes for tests of programs that call LLMs: a server with scripted replies in OpenAI's and Anthropic's formats.

``ScriptedServer`` is the server, ``Reply`` a reply, ``Request`` a received request, ``in_turn`` a script that gives one
reply after the other, and ``SILENCE`` a reply that never arrives.
"""

from bpac.testing.replies import SILENCE, Reply, Request, Script, in_turn
from bpac.testing.server import ScriptedServer

__all__ = ["SILENCE", "Reply", "Request", "Script", "ScriptedServer", "in_turn"]
