"""The tree of errors is where a stranger looks for it, and all of it."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import bpac
from bpac import errors
from bpac.errors import BpacError, MissingExtra

LINE = re.compile(r"^(?P<indent> *)- ``(?P<name>\w+)``(?: \(``(?P<place>[\w.]+)``\))?", re.MULTILINE)


def below(kind: type[BpacError]) -> Iterator[type[BpacError]]:
    """An error and all that are kinds of it."""
    yield kind
    for child in kind.__subclasses__():
        yield from below(child)


def test_every_error_is_in_the_tree() -> None:
    """With its parent, and with its place if that is elsewhere."""
    for module in pkgutil.walk_packages(bpac.__path__, "bpac."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except MissingExtra:
                continue  # a package that nobody needs for tests
    written: dict[str, tuple[str | None, str]] = {}
    above: list[tuple[int, str]] = []
    for found in LINE.finditer(errors.__doc__ or ""):
        depth = len(found["indent"])
        above = [outer for outer in above if outer[0] < depth]
        written[found["name"]] = (above[-1][1] if above else None, found["place"] or "bpac.errors")
        above.append((depth, found["name"]))
    ours = {kind for kind in below(BpacError) if kind.__module__.startswith("bpac.") and kind.__name__[0] != "_"}
    actual = {
        kind.__name__: (None if kind is BpacError else kind.__mro__[1].__name__, kind.__module__) for kind in ours
    }
    assert written == actual
