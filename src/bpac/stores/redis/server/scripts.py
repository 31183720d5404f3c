"""The Lua scripts that Redis runs: each takes effect as a whole or not at all, or the game that it wrote to ends.

Redis runs a script without interruption, but takes nothing back if it fails in its middle. Scripts that write once
cannot be half done; the others note that they write (``lua/writing.lua``).
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# What scripts have in common, by the name of its file, and the scripts that need it.
SHARED = {
    "writing": ("batch", "cut_journal", "join", "publish", "remove", "retire", "start"),
    "cut_off": ("batch", "remove", "start"),
    "server_id": ("look", "remove"),
}


@dataclass(frozen=True, slots=True)
class Script:
    """A script.

    Parameters
    ----------
    text: what Redis runs.
    digest: by which Redis knows it once it has seen it.
    """

    text: str
    digest: str


@cache
def script(name: str) -> Script:
    """The script of that name.

    >>> script("seal").text.splitlines()[0][:20]
    '-- Lets nothing arri'
    """
    names = (*(shared for shared, users in SHARED.items() if name in users), name)
    folder = files("bpac.stores.redis") / "lua"
    text = "\n".join((folder / f"{one}.lua").read_text(encoding="utf-8") for one in names)
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
