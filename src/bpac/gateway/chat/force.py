"""The header ``x-bpac-force``: a caller chooses the model of one request, which is then outside the game."""

from collections.abc import Iterable
from typing import NamedTuple

from bpac.gateway.chat.outside import AnsweredBy
from bpac.gateway.http.bad_request import BadRequest

HEADER = "x-bpac-force"
_MODELS: dict[bytes, AnsweredBy] = {b"draft": "draft", b"expert": "expert"}


class Force(NamedTuple):
    """A caller's choice of the model.

    Parameters
    ----------
    model: the model that answers.
    allowed: whether the caller may choose on every route, as operators may.
    """

    model: AnsweredBy
    allowed: bool

    @classmethod
    def read(cls, headers: Iterable[tuple[bytes, bytes]], *, operator: bool) -> "Force | None":
        """The choice in the headers of a request; none if there is none, ``BadRequest`` if it cannot be understood.

        Parameters
        ----------
        headers: of the request.
        operator: whether the caller has the role ``operator``.

        >>> Force.read([(b"x-bpac-force", b"expert")], operator=True)
        Force(model='expert', allowed=True)
        """
        values = {value.strip().lower() for name, value in headers if name == b"x-bpac-force"}
        if not values:
            return None
        model = _MODELS.get(values.pop()) if len(values) == 1 else None
        if model is None:
            raise BadRequest(f"{HEADER} must be draft or expert", 400, HEADER, "invalid_value")
        return cls(model, operator)

    @staticmethod
    def not_allowed() -> BadRequest:
        """The error of a caller who may not choose."""
        message = (
            f"{HEADER} needs an API key with the roles call and operator, or a route with allow_force = true: "
            "leave the header out"
        )
        return BadRequest(message, 403, HEADER, "force_not_allowed")
