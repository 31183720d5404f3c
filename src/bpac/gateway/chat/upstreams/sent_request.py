"""A caller's request as one model server gets it, and how the response to it is read."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bpac.models.api import CHAT_AT_OTHER_DOORS, ModelApi, Translation
from bpac.wire.json import to_json
from bpac.wire.originals import ORIGINAL, for_api, original_of

_NONE: Mapping[str, str] = {}


class SentRequest(NamedTuple):
    """A request as a server gets it.

    Parameters
    ----------
    data: its body.
    translation: how the response is translated; none if it is a chat completion.
    headers: its headers beyond those of every request.
    """

    data: bytes
    translation: Translation | None = None
    headers: Mapping[str, str] = _NONE


def sent_request(chat: Mapping[str, Any], api: ModelApi, every: Mapping[str, str]) -> SentRequest:
    """A chat request for a server; ``NotExpressible`` if the server's API cannot express it.

    Parameters
    ----------
    chat: the request.
    api: the API of the server.
    every: the headers of every request to the server. The caller's do not override them.
    """
    if api.translation is None:
        if ORIGINAL not in chat:
            return SentRequest(to_json(chat))
        return SentRequest(to_json(for_api(chat, "chat")), CHAT_AT_OTHER_DOORS)
    data, translation = to_json(api.translation.write(chat)), api.translation.for_request(chat)
    original = original_of(chat, translation.api) or {}
    set_already = {name.lower() for name in every}
    headers = {name: value for name, value in original.get("headers", _NONE).items() if name not in set_already}
    return SentRequest(data, translation, headers)
