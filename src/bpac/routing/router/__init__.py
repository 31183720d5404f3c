"""The router, one file for each role.

``router.py`` decides and takes in outcomes, ``queries.py`` is about arrivals, ``warm_start.py`` about history and
``view.py`` about reading the state. ``proposals.py`` makes and checks the entries, ``parts.py`` holds it all together.
"""

from bpac.routing.router.parts import Write
from bpac.routing.router.router import Router

__all__ = ["Router", "Write"]
