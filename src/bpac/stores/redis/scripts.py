"""The Lua scripts that Redis runs: each takes effect as a whole or not at all."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# Scripts that cut tickets off.
CUTTING = ("batch", "remove", "start")


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
    names = ("cut_off", name) if name in CUTTING else (name,)
    folder = files("bpac.stores.redis") / "lua"
    text = "\n".join((folder / f"{one}.lua").read_text(encoding="utf-8") for one in names)
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
