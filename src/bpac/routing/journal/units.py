"""What a round of a game is: a request, or an episode of several requests that follow one decision."""

import json
from typing import Literal

Unit = Literal["request", "episode"]
# In the terms of a game whose rounds are episodes.
EPISODE = "episode"


def unit_of(terms: str) -> Unit:
    """The unit that the terms of a game name, which are text of any kind.

    >>> unit_of('{"episode": {"by": "user"}}'), unit_of("{}"), unit_of("[1"), unit_of("7")
    ('episode', 'request', 'request', 'request')
    """
    try:
        values = json.loads(terms)
    except ValueError:
        return "request"
    return "episode" if isinstance(values, dict) and values.get(EPISODE) else "request"
